//! The `messages` of a request.

use super::calls::{assign_call_ids, decode_call, decode_function_call, decode_result};
use super::chat_message::ChatMessage;
use super::message_encoder::MessageEncoder;
use super::parts::{decode_content, decode_image, decode_media, decode_required_content};
use super::reader::{one_of, required};
use super::reasoning::{AssistantReasoning, decode_reasoning};
use super::role::{MessageRole, ROLES};
use crate::formats::UpstreamTarget;
use crate::json::Fields;
use crate::model::{ApiError, FieldLocation, Json, Losses, Part, PartKind, Request, Role, Turn};

/// Decodes `messages`, one turn each.
pub(super) fn decode_turns<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Turn<'a>>, ApiError> {
    let messages = required(fields, "messages")?;
    let path = messages.path;
    let mut turns = Vec::new();
    messages.each(|at, node| {
        turns.push(node.fields(|message| decode_turn(message, at, losses))?);
        Ok(())
    })?;
    if turns.is_empty() {
        return Err(path.wrong("at least one message"));
    }
    assign_call_ids(&mut turns);
    Ok(turns)
}

fn decode_turn<'a>(
    mut message: Fields<'a, '_>,
    at: u32,
    losses: &mut Losses,
) -> Result<Turn<'a>, ApiError> {
    let role = one_of(required(&mut message, "role")?, &ROLES)?;
    let (role, parts) = match role {
        MessageRole::Developer => (
            Role::Developer,
            decode_required_content(&mut message, role, losses)?,
        ),
        MessageRole::System => (
            Role::System,
            decode_required_content(&mut message, role, losses)?,
        ),
        MessageRole::User => (
            Role::User,
            decode_required_content(&mut message, role, losses)?,
        ),
        MessageRole::Assistant => (Role::Model, decode_assistant(&mut message, losses)?),
        MessageRole::Tool | MessageRole::Function => {
            let kind = PartKind::Result(decode_result(&mut message, role, losses)?);
            (Role::User, vec![Part { kind, at: None }])
        }
    };
    message.finish(losses);
    Ok(Turn {
        role,
        parts,
        at: Some(at),
    })
}

/// Decodes an assistant message: reasoning first, then content, then calls. The format keeps no order
/// among them.
fn decode_assistant<'a>(
    message: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, ApiError> {
    let AssistantReasoning {
        mut parts,
        signatures,
    } = decode_reasoning(message, losses)?;
    parts.extend(decode_content(message, MessageRole::Assistant, losses)?.unwrap_or_default());
    if let Some(refusal) = message.text("refusal")? {
        let kind = PartKind::Refusal(refusal);
        parts.push(Part { kind, at: None });
    }
    // Not official, but responses with images are encoded like this.
    message.each("images", |_, node| {
        let kind = node.fields(|mut part| {
            part.take("type");
            part.take("index");
            let kind = decode_media(&mut part, "image_url", decode_image, losses)?;
            part.finish(losses);
            Ok(kind)
        })?;
        parts.push(Part { kind, at: None });
        Ok(())
    })?;
    if let Some(audio) = message.node("audio") {
        return Err(audio
            .path
            .wrong("no reference to the audio of an earlier response, which is not stored"));
    }
    // Clients send responses back as they came; an empty list is no loss.
    if let Some(node) = message.node("annotations")
        && node.value != Json::Array(Vec::new())
    {
        losses.dropped(FieldLocation::Path(node.path.to_string().into()));
    }
    let mut calls = Vec::new();
    message.each("tool_calls", |_, node| {
        calls.push(node.fields(|call| decode_call(call, losses))?);
        Ok(())
    })?;
    if let Some(node) = message.node("function_call") {
        calls.push(decode_function_call(node, None, losses)?);
    }
    signatures.attach(&mut calls, &message.path, losses);
    parts.extend(calls.into_iter().map(|call| Part {
        kind: PartKind::Call(call),
        at: None,
    }));
    Ok(parts)
}

/// Encodes turns as messages. Tool results become messages of their own; reasoning is left out, except
/// for models that need their reasoning back in a tool loop.
pub(super) fn encode_turns<'a>(
    request: &'a Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<ChatMessage<'a>>, ApiError> {
    let mut encoder = MessageEncoder::new(request.turns.len(), target, losses);
    let loop_start = request
        .turns
        .iter()
        .rposition(has_user_content)
        .unwrap_or(0);
    for (number, turn) in request.turns.iter().enumerate() {
        match turn.role {
            Role::System | Role::Developer => encoder.encode_system(turn)?,
            Role::User => encoder.encode_user(turn)?,
            Role::Model => encoder.encode_assistant(turn, number > loop_start)?,
        }
    }
    encoder.flush_delayed();
    let MessageEncoder { messages, .. } = encoder;
    let Some(last) = messages.last() else {
        let turn = request.turns.last().and_then(|turn| turn.at);
        let message = "there is nothing to answer: every turn is empty";
        return Err(ApiError::invalid(message).at_location(FieldLocation::turn_or_all(turn)));
    };
    // The format has no prefill: the model does not continue its own last message.
    if last.is_of_model() && last.tool_calls.is_empty() {
        let turn = request.turns.last().and_then(|turn| turn.at);
        losses.approximated(FieldLocation::Turn { turn });
    }
    Ok(messages)
}

/// Whether a turn holds content of the user, not only tool results.
fn has_user_content(turn: &Turn<'_>) -> bool {
    let is_content = |part: &Part<'_>| !matches!(part.kind, PartKind::Result(_));
    turn.role == Role::User && turn.parts.iter().any(is_content)
}

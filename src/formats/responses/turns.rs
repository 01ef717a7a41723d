//! Turns: the items of `input`.
//!
//! A step of the model is several items in this format (reasoning, message, calls) and one turn in the model, which
//! is located by the first of them.

use super::call_ids::CallPairs;
use super::content::{self, InputContent, InputPart};
use super::image_generation;
use super::input_items::{self, InputItem};
use super::input_list::InputList;
use super::status::COMPLETED;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, FieldLocation, Json, Losses, Part, PartField, PartKind, Role, Signature, Text,
    ToolKind, ToolResult, Turn, truncated,
};

/// Decodes `input`: a string, or a list of items.
pub(super) fn decode<'a>(
    input: Node<'a, '_>,
    turns: &mut Vec<Turn<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    if matches!(input.value, Json::Str(_)) {
        turns.push(Turn {
            role: Role::User,
            parts: content::decode(input, losses)?,
            at: None,
        });
        return Ok(());
    }
    if !matches!(input.value, Json::Array(_)) {
        return Err(input.wrong("a string or an array of items"));
    }
    input.each(|at, node| node.fields(|fields| decode_item(at, fields, turns, losses)))
}

/// Decodes one item; `at`: its index in `input`.
fn decode_item<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    turns: &mut Vec<Turn<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let kind = fields.text("type")?.unwrap_or_else(|| "message".into());
    let part = match kind.as_ref() {
        "message" => return decode_message(at, fields, turns, losses),
        "function_call_output" | "custom_tool_call_output" => {
            let kind = input_items::decode_call_output(&mut fields, losses)?;
            turns.push(Turn {
                role: Role::User,
                parts: vec![Part { kind, at: None }],
                at: Some(at),
            });
            finish_item(fields, losses);
            return Ok(());
        }
        "reasoning" => input_items::decode_reasoning(&mut fields, losses)?,
        "function_call" => Some(input_items::decode_call(
            &mut fields,
            "arguments",
            ToolKind::Function,
        )?),
        "custom_tool_call" => Some(input_items::decode_call(
            &mut fields,
            "input",
            ToolKind::Custom,
        )?),
        "image_generation_call" => image_generation::decode_input_call(&mut fields)?,
        // The message that follows holds what came of them.
        "web_search_call" | "file_search_call" | "code_interpreter_call" => None,
        "item_reference" => {
            // References to stored items have been replaced by the items before decoding.
            let id = fields.text("id")?.unwrap_or_default();
            let id = truncated(&id);
            let message = format!("no item `{id}` is kept here (any more); send the item itself");
            return Err(unsupported(&fields.path, &message));
        }
        other => {
            let message = format!("items of type {other} have no counterpart");
            return Err(unsupported(&fields.path, &message));
        }
    };
    let Some(kind) = part else {
        losses.dropped(FieldLocation::Path(fields.path.to_string().into()));
        return Ok(());
    };
    let parts = vec![Part { kind, at: None }];
    continue_model_turn(at, parts, turns);
    finish_item(fields, losses);
    Ok(())
}

fn unsupported(path: &Path<'_>, message: &str) -> ApiError {
    ApiError::invalid(format!("{path}: {message}")).at(path.to_string())
}

/// Reports the fields of an item that were not decoded; its id and status mean nothing to other formats.
fn finish_item(mut fields: Fields<'_, '_>, losses: &mut Losses) {
    fields.take("id");
    fields.take("status");
    fields.finish(losses);
}

/// Adds parts to the model's turn. Items of one step belong to one turn; a message right after a message begins
/// another.
fn continue_model_turn<'a>(at: u32, parts: Vec<Part<'a>>, turns: &mut Vec<Turn<'a>>) {
    let is_message = |part: Option<&Part<'_>>| {
        matches!(
            part.map(|part| &part.kind),
            Some(PartKind::Text(_) | PartKind::Refusal(_))
        )
    };
    let adds_message = is_message(parts.first());
    match turns.last_mut() {
        Some(turn)
            if turn.role == Role::Model && !(adds_message && is_message(turn.parts.last())) =>
        {
            // The turn is located by its first item, in which these parts have no index.
            let parts = parts.into_iter().map(|part| Part { at: None, ..part });
            turn.parts.extend(parts);
        }
        _ => turns.push(Turn {
            role: Role::Model,
            parts,
            at: Some(at),
        }),
    }
}

fn decode_message<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    turns: &mut Vec<Turn<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let role = fields.text("role")?;
    let role = match fields.need("role", role)?.as_ref() {
        "user" => Role::User,
        ASSISTANT => Role::Model,
        "system" => Role::System,
        "developer" => Role::Developer,
        other => {
            let path = Path::Key(&fields.path, "role");
            return Err(path.wrong_text("one of user, assistant, system, developer", other));
        }
    };
    let parts = match fields.node("content") {
        Some(node) => content::decode(node, losses)?,
        None => return fields.need("content", None),
    };
    if role == Role::Model {
        continue_model_turn(at, parts, turns);
    } else {
        let at = Some(at);
        turns.push(Turn { role, parts, at });
    }
    finish_item(fields, losses);
    Ok(())
}

/// The role of the model's messages.
const ASSISTANT: &str = "assistant";

const fn encode_role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Model => ASSISTANT,
    }
}

/// The conversation as it is encoded.
pub(super) struct EncodedInput<'r> {
    pub instructions: Option<Text<'r>>,
    pub input: Vec<InputItem<'r>>,
    /// Encrypted reasoning is among the items.
    pub has_reasoning: bool,
}

/// Encodes turns as `instructions` and `input`.
pub(super) fn encode<'r>(
    turns: &'r [Turn<'_>],
    losses: &mut Losses,
) -> Result<EncodedInput<'r>, ApiError> {
    let is_system = |turn: &&Turn<'_>| turn.role == Role::System;
    let leading = turns.iter().take_while(is_system).count();
    let (instructions, rest) = turns.split_at(leading);
    let mut list = InputList::new(CallPairs::of(turns), losses);
    // An upstream refuses a request without any input.
    let (instructions, encoded) = match rest {
        [] => (None, instructions),
        rest => (join_instructions(instructions)?, rest),
    };
    let mut previous_role = Role::User;
    for turn in encoded {
        // Neighbouring turns of the model are one step, whose outputs come after the last of them.
        if turn.role != Role::Model || previous_role != Role::Model {
            list.begin_turn();
        }
        previous_role = turn.role;
        encode_turn(turn, &mut list)?;
    }
    list.finish();
    let mut instructions = instructions;
    if list.items.is_empty() && instructions.take().is_some() {
        for turn in &turns[..leading] {
            list.begin_turn();
            encode_turn(turn, &mut list)?;
        }
        list.finish();
    }
    if list.items.is_empty() {
        let turn = turns.last().and_then(|turn| turn.at);
        let message = "there is nothing to answer: every turn is empty";
        return Err(ApiError::invalid(message).at_location(FieldLocation::turn_or_all(turn)));
    }
    // The format has no way to make a model continue its own message.
    if let Some(InputItem::Message {
        role: ASSISTANT, ..
    }) = list.items.last()
        && let Some(turn) = rest.last()
    {
        let turn = turn.at;
        list.losses.approximated(FieldLocation::Turn { turn });
    }
    Ok(EncodedInput {
        instructions,
        input: list.items,
        has_reasoning: list.has_reasoning,
    })
}

/// Joins the texts of the leading system turns as paragraphs.
fn join_instructions<'r>(turns: &'r [Turn<'_>]) -> Result<Option<Text<'r>>, ApiError> {
    let mut joined = Text::default();
    for turn in turns {
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(text) if joined.is_empty() => joined = Text::Borrowed(text),
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => {
                    joined.to_mut().push_str("\n\n");
                    joined.to_mut().push_str(text);
                }
                _ => {
                    let message = "instructions to the upstream of this model are text only";
                    return Err(ApiError::invalid(message).at_location(location_of(turn, part)));
                }
            }
        }
    }
    Ok(Some(joined).filter(|joined| !joined.is_empty()))
}

fn location_of(turn: &Turn<'_>, part: &Part<'_>) -> FieldLocation {
    FieldLocation::Part {
        turn: turn.at,
        part: part.at,
    }
}

/// Encodes the parts of one turn; messages collect the parts that are no items of their own.
fn encode_turn<'r>(turn: &'r Turn<'_>, list: &mut InputList<'r, '_>) -> Result<(), ApiError> {
    let is_empty = |part: &Part<'_>| match &part.kind {
        PartKind::Text(text) | PartKind::Refusal(text) => text.is_empty(),
        _ => false,
    };
    if turn.parts.iter().all(is_empty) {
        list.losses
            .approximated(FieldLocation::Turn { turn: turn.at });
        return Ok(());
    }
    let mut content = Vec::new();
    for part in turn.parts.iter().filter(|part| !is_empty(part)) {
        let location = location_of(turn, part);
        match &part.kind {
            PartKind::Text(text) if turn.role == Role::Model => {
                let annotations = [];
                content.push(InputPart::OutputText { text, annotations });
            }
            PartKind::Refusal(refusal) if turn.role == Role::Model => {
                content.push(InputPart::Refusal { refusal });
            }
            PartKind::Text(text) | PartKind::Refusal(text) => {
                content.push(InputPart::InputText { text });
            }
            PartKind::Media(media) if turn.role != Role::Model => {
                content.push(content::encode_media(media, location, list.losses)?);
            }
            other => {
                encode_message(turn.role, &mut content, list);
                encode_item(other, location, list)?;
            }
        }
    }
    encode_message(turn.role, &mut content, list);
    Ok(())
}

fn encode_message<'r>(role: Role, content: &mut Vec<InputPart<'r>>, list: &mut InputList<'r, '_>) {
    if content.is_empty() {
        return;
    }
    let content = InputContent::of(std::mem::take(content));
    let is_list = role == Role::Model && matches!(content, InputContent::Parts(_));
    let item = InputItem::Message {
        id: is_list.then(|| format!("msg_{}", list.items.len())),
        status: is_list.then_some(COMPLETED),
        role: encode_role(role),
        content,
    };
    if role == Role::Model {
        list.push_model_item(item);
    } else {
        list.drop_pending_reasoning();
        list.push(item);
    }
}

/// Encodes a part that is an item of its own.
fn encode_item<'r>(
    part: &'r PartKind<'_>,
    location: FieldLocation,
    list: &mut InputList<'r, '_>,
) -> Result<(), ApiError> {
    match part {
        PartKind::Reasoning { text, signature } => {
            encode_reasoning(text, signature.as_ref(), location, list);
        }
        PartKind::Call(call) => {
            if let Some(signature) = &call.signature {
                let location = location.field(PartField::CallSignature);
                encode_reasoning("", Some(signature), location, list);
            }
            list.push_call(call, location);
        }
        PartKind::Result(result) => encode_call_output(result, location, list)?,
        PartKind::Media(media) => match input_items::encode_image(media, list.items.len()) {
            Some(item) => list.push_model_item(item),
            None => {
                let message = "the upstream of this model takes no such media from the model";
                return Err(ApiError::invalid(message).at_location(location));
            }
        },
        PartKind::Text(_) | PartKind::Refusal(_) => {}
    }
    Ok(())
}

fn encode_reasoning<'r>(
    text: &'r str,
    signature: Option<&'r Signature<'_>>,
    location: FieldLocation,
    list: &mut InputList<'r, '_>,
) {
    match input_items::encode_reasoning(text, signature) {
        Some(item) => list.push_reasoning(item, location),
        None if signature.is_none() && text.is_empty() => {}
        None => list.losses.dropped(location),
    }
}

fn encode_call_output<'r>(
    result: &'r ToolResult<'_>,
    location: FieldLocation,
    list: &mut InputList<'r, '_>,
) -> Result<(), ApiError> {
    list.drop_pending_reasoning();
    let Some(call) = list.next_answered_call() else {
        list.losses.dropped(location);
        return Ok(());
    };
    if result.failed {
        list.losses.dropped(location.field(PartField::Failure));
    }
    let mut output = Vec::new();
    for part in &result.parts {
        let location = location.in_tool_result(part.at);
        match &part.kind {
            PartKind::Text(text) if text.is_empty() => {}
            PartKind::Text(text) => output.push(InputPart::InputText { text }),
            PartKind::Media(media) => {
                output.push(content::encode_media(media, location, list.losses)?);
            }
            _ => list.losses.dropped(location),
        }
    }
    list.push_output(call, InputContent::of(output));
    Ok(())
}

//! The items of `input`, gathered into turns.
//!
//! A step of the model is a row of items here (reasoning, message, calls) and one turn in the model:
//! its `at` is the first of them.

use super::content;
use super::tools::qualified;
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, Arguments, Call, FieldLocation, Issuer, Json, Losses, Media, Part, PartKind, Role,
    Signature, Source, Text, ToolKind, ToolResult, Turn,
};

pub(super) fn read<'a>(
    input: Node<'a, '_>,
    turns: &mut Vec<Turn<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    if matches!(input.value, Json::Str(_)) {
        turns.push(Turn {
            role: Role::User,
            parts: content::read(input, losses)?,
            at: None,
        });
        return Ok(());
    }
    if !matches!(input.value, Json::Array(_)) {
        return Err(input.path.wrong("a string or an array of items"));
    }
    input.each(|at, node| node.fields(|fields| read_item(at, fields, turns, losses)))
}

fn read_item<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    turns: &mut Vec<Turn<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let kind = fields.text("type")?.unwrap_or_else(|| "message".into());
    let part = match kind.as_ref() {
        "message" => return read_message(at, fields, turns, losses),
        "function_call_output" | "custom_tool_call_output" => {
            return read_result(at, fields, turns, losses);
        }
        "reasoning" => read_thought(&mut fields, losses)?,
        "function_call" => Some(read_call(&mut fields, "arguments", ToolKind::Function)?),
        "custom_tool_call" => Some(read_call(&mut fields, "input", ToolKind::Custom)?),
        "image_generation_call" => read_image(&mut fields)?,
        // What the model made of them stands in the message that follows.
        "web_search_call" | "file_search_call" | "code_interpreter_call" => None,
        "item_reference" => {
            let message = "nothing is stored between requests; send the item itself";
            return Err(refuse(&fields.path, message));
        }
        other => {
            let message = format!("items of type {other} have no counterpart");
            return Err(refuse(&fields.path, &message));
        }
    };
    let Some(kind) = part else {
        losses.dropped(FieldLocation::Path(fields.path.to_string().into()));
        return Ok(());
    };
    let parts = vec![Part { kind, at: None }];
    continue_model_turn(at, parts, turns);
    finish(fields, losses);
    Ok(())
}

fn refuse(path: &Path<'_>, message: &str) -> ApiError {
    ApiError::invalid(format!("{path}: {message}")).at(path.to_string())
}

/// An item's own name and state mean nothing outside of the format.
fn finish(mut fields: Fields<'_, '_>, losses: &mut Losses) {
    fields.take("id");
    fields.take("status");
    fields.finish(losses);
}

/// Items of one step belong together; a message right after a message is a step of its own.
fn continue_model_turn<'a>(at: u32, parts: Vec<Part<'a>>, turns: &mut Vec<Turn<'a>>) {
    let spoken = |part: Option<&Part<'_>>| {
        matches!(
            part.map(|part| &part.kind),
            Some(PartKind::Text(_) | PartKind::Refusal(_))
        )
    };
    let message = spoken(parts.first());
    match turns.last_mut() {
        Some(turn) if turn.role == Role::Model && !(message && spoken(turn.parts.last())) => {
            // The turn goes by its first item: within that, these parts have no place.
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

fn read_message<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    turns: &mut Vec<Turn<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let role = fields.text("role")?;
    let role = match fields.need("role", role)?.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Model,
        "system" => Role::System,
        "developer" => Role::Developer,
        _ => {
            let path = Path::Key(&fields.path, "role");
            return Err(path.wrong("one of user, assistant, system, developer"));
        }
    };
    let parts = match fields.node("content") {
        Some(node) => content::read(node, losses)?,
        None => return fields.need("content", None),
    };
    if role == Role::Model {
        continue_model_turn(at, parts, turns);
    } else {
        let at = Some(at);
        turns.push(Turn { role, parts, at });
    }
    finish(fields, losses);
    Ok(())
}

/// `None`: it says nothing without the vendor's store.
fn read_thought<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<PartKind<'a>>, ApiError> {
    let id = fields.text("id")?.unwrap_or_default();
    let summary = content::joined_texts(fields, "summary", "summary_text", losses)?;
    let content = content::joined_texts(fields, "content", "reasoning_text", losses)?;
    let text = if summary.is_empty() { content } else { summary };
    let signature = fields.text("encrypted_content")?.map(|data| {
        Signature::unwrap_text(&data).unwrap_or_else(|| Signature {
            issuer: Issuer::Responses,
            data: format!("{id}\n{data}").into(),
        })
    });
    let empty = text.is_empty() && signature.is_none();
    Ok((!empty).then_some(PartKind::Reasoning { text, signature }))
}

fn read_call<'a>(
    fields: &mut Fields<'a, '_>,
    arguments: &str,
    kind: ToolKind,
) -> Result<PartKind<'a>, ApiError> {
    let id = fields.text("call_id")?;
    let namespace = fields.text("namespace")?;
    let name = fields.text("name")?;
    let text = fields.text(arguments)?;
    Ok(PartKind::Call(Call {
        id: Some(fields.need("call_id", id)?),
        name: qualified(namespace.as_deref(), fields.need("name", name)?),
        arguments: Arguments::Text(fields.need(arguments, text)?),
        signature: None,
        kind,
    }))
}

fn read_result<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    turns: &mut Vec<Turn<'a>>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let id = fields.text("call_id")?;
    let id: Text<'a> = fields.need("call_id", id)?;
    let parts = match fields.node("output") {
        Some(node) => content::read(node, losses)?,
        None => return fields.need("output", None),
    };
    let result = ToolResult {
        id: Some(id),
        name: None,
        parts,
        failed: false,
    };
    turns.push(Turn {
        role: Role::User,
        parts: vec![Part {
            kind: PartKind::Result(result),
            at: None,
        }],
        at: Some(at),
    });
    finish(fields, losses);
    Ok(())
}

/// `None`: the image itself was left out.
fn read_image<'a>(fields: &mut Fields<'a, '_>) -> Result<Option<PartKind<'a>>, ApiError> {
    let data = fields.text("result")?;
    let format = fields.text("output_format")?;
    Ok(data.map(|data| {
        PartKind::Media(Media {
            mime: format!("image/{}", format.as_deref().unwrap_or("png")).into(),
            source: Source::Base64(data),
            name: None,
            detail: None,
        })
    }))
}

#[cfg(test)]
#[path = "tests/turns.rs"]
mod tests;

//! Tool calls: `tool_use` blocks and their `input`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::block_fields::required_text;
use crate::json::{Fields, Path, RawJson, decode_json, from_json};
use crate::model::{ApiError, Arguments, Call, Json, Part, PartKind, Text, ToolKind};

/// Decodes a `tool_use` block of a request.
pub(super) fn decode_tool_use<'a>(fields: &mut Fields<'a, '_>) -> Result<Call<'a>, ApiError> {
    let id = required_text(fields, "id")?;
    let name = required_text(fields, "name")?;
    let input = fields.take("input");
    let input = fields.need("input", input)?;
    if !input.is_object() {
        return Err(Path::Key(&fields.path, "input").wrong("an object"));
    }
    Ok(Call {
        id: Some(id),
        name,
        arguments: Arguments::Tree(input),
        signature: None,
        kind: ToolKind::Function,
    })
}

/// Decodes a `tool_use` block of a response; unlike a client, an upstream may leave out id and input.
pub(super) fn decode_response_tool_use<'a>(
    fields: &mut Fields<'a, '_>,
) -> Result<Call<'a>, ApiError> {
    let name = fields.text("name")?;
    Ok(Call {
        id: fields.text("id")?,
        name: fields.need("name", name)?,
        arguments: match fields.take("input") {
            Some(input) => Arguments::Tree(input),
            None => Arguments::Text(Text::Borrowed("{}")),
        },
        signature: None,
        kind: ToolKind::Function,
    })
}

from_json! {
    struct RawToolInputs<'a> {
        "content" => content: Option<Vec<RawToolInput<'a>>>,
    }
}

from_json! {
    struct RawToolInput<'a> {
        "input" => input: Option<RawJson<'a>>,
    }
}

/// Replaces arguments that hold a number of more than 64 bits by their JSON text: a tree would round
/// the number, which may be an id of which every digit counts.
pub(super) fn restore_long_numbers<'a>(body: &'a [u8], parts: &mut [Part<'a>]) {
    let is_exact = |part: &Part<'_>| match &part.kind {
        PartKind::Call(call) => match &call.arguments {
            Arguments::Tree(tree) => has_exact_numbers(tree),
            Arguments::Text(_) => true,
        },
        _ => true,
    };
    if parts.iter().all(is_exact) {
        return;
    }
    let text = std::str::from_utf8(body).unwrap_or_default();
    let raw: RawToolInputs<'a> = decode_json(text).unwrap_or_default();
    let blocks = raw.content.unwrap_or_default();
    for part in parts.iter_mut().filter(|part| !is_exact(part)) {
        let block = part.at.and_then(|at| blocks.get(at as usize));
        if let (PartKind::Call(call), Some(input)) =
            (&mut part.kind, block.and_then(|block| block.input))
        {
            call.arguments = Arguments::Text(input.get().into());
        }
    }
}

fn has_exact_numbers(tree: &Json<'_>) -> bool {
    match tree {
        Json::Array(items) => items.iter().all(has_exact_numbers),
        Json::Object(entries) => entries.iter().all(|(_, value)| has_exact_numbers(value)),
        Json::Number(_) if tree.as_u64().is_none() && tree.as_i64().is_none() => {
            let size = tree.as_f64().unwrap_or_default().abs();
            size < i64::MAX as f64
        }
        _ => true,
    }
}

/// The `input` of a `tool_use` block, an object whatever the upstream's model wrote.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ToolInput<'a> {
    Empty {},
    Raw(&'a RawValue),
    Tree(&'a Json<'a>),
    /// The text for a custom tool, which takes free text instead of an object.
    FreeText {
        input: Cow<'a, str>,
    },
    /// Arguments that are not a JSON object.
    Malformed {
        #[serde(rename = "_raw")]
        raw: Cow<'a, str>,
    },
}

/// Encodes the arguments of a call.
pub(super) fn encode_input<'a>(call: &'a Call<'a>) -> ToolInput<'a> {
    match &call.arguments {
        arguments if call.kind == ToolKind::Custom => ToolInput::FreeText {
            input: arguments.to_text(),
        },
        Arguments::Tree(Json::Null) => ToolInput::Empty {},
        Arguments::Tree(tree @ Json::Object(_)) => ToolInput::Tree(tree),
        arguments @ Arguments::Tree(_) => ToolInput::Malformed {
            raw: arguments.to_text(),
        },
        Arguments::Text(text) if text.trim().is_empty() => ToolInput::Empty {},
        Arguments::Text(text) => match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) if raw.get().starts_with('{') => ToolInput::Raw(raw),
            _ => ToolInput::Malformed {
                raw: Cow::Borrowed(text),
            },
        },
    }
}

//! Tool calls: `tool_use` blocks and their `input`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::block_fields::required_text;
use crate::json::{Fields, Path};
use crate::model::{ApiError, Arguments, Call, Json, ToolKind};

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

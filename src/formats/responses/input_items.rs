//! The items of `input` other than messages: reasoning, tool calls and their outputs, generated images.

use serde::Serialize;

use super::content::{self, InputContent};
use super::image_generation::image_data;
use super::namespaces::qualified_name;
use super::output_items::{NO_ARGUMENTS, SummaryText};
use super::signatures;
use super::status::COMPLETED;
use crate::formats::base64_text;
use crate::json::Fields;
use crate::model::{
    ApiError, Arguments, Call, Losses, Media, PartKind, Signature, Text, ToolKind, ToolResult,
};

/// One item of `input` as it is encoded.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputItem<'r> {
    Message {
        /// The format requires `id` and `status` only where the content of the model's own message is a list.
        id: Option<String>,
        status: Option<&'static str>,
        role: &'static str,
        content: InputContent<'r>,
    },
    Reasoning {
        id: &'r str,
        summary: Vec<SummaryText<'r>>,
        encrypted_content: &'r str,
    },
    FunctionCall {
        call_id: Text<'r>,
        name: &'r str,
        arguments: Text<'r>,
    },
    FunctionCallOutput {
        call_id: Text<'r>,
        output: InputContent<'r>,
    },
    CustomToolCall {
        call_id: Text<'r>,
        name: &'r str,
        input: Text<'r>,
    },
    CustomToolCallOutput {
        call_id: Text<'r>,
        output: InputContent<'r>,
    },
    ImageGenerationCall {
        id: String,
        result: Text<'r>,
        status: &'static str,
    },
}

/// Decodes a `reasoning` item; `None`: it means nothing without the vendor's store.
pub(super) fn decode_reasoning<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<PartKind<'a>>, ApiError> {
    let id = fields.text("id")?.unwrap_or_default();
    let summary = content::decode_joined_texts(fields, "summary", "summary_text", losses)?;
    let content = content::decode_joined_texts(fields, "content", "reasoning_text", losses)?;
    let text = if summary.is_empty() { content } else { summary };
    let signature = fields.text("encrypted_content")?.map(|data| {
        Signature::unwrap_text(&data).unwrap_or_else(|| signatures::decode_own(&id, &data))
    });
    let empty = text.is_empty() && signature.is_none();
    Ok((!empty).then_some(PartKind::Reasoning { text, signature }))
}

/// Encodes a `reasoning` item; `None`: another format issued the signature, or there is none.
pub(super) fn encode_reasoning<'r>(
    text: &'r str,
    signature: Option<&'r Signature<'_>>,
) -> Option<InputItem<'r>> {
    let (id, encrypted_content) = signature.and_then(signatures::encode_own)?;
    let summary = match text {
        "" => Vec::new(),
        text => vec![SummaryText { text: text.into() }],
    };
    Some(InputItem::Reasoning {
        id,
        summary,
        encrypted_content,
    })
}

/// Decodes a tool call; `arguments` is the key of what the tool is called with.
pub(super) fn decode_call<'a>(
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
        name: qualified_name(namespace.as_deref(), fields.need("name", name)?),
        arguments: Arguments::Text(fields.need(arguments, text)?),
        signature: None,
        kind,
    }))
}

/// Encodes a tool call under the id that its output has too.
pub(super) fn encode_call<'r>(call: &'r Call<'_>, call_id: Text<'r>) -> InputItem<'r> {
    let name = &*call.name;
    let text = call.arguments.to_text();
    match call.kind {
        ToolKind::Function => InputItem::FunctionCall {
            call_id,
            name,
            arguments: match text.trim() {
                "" => NO_ARGUMENTS.into(),
                _ => text,
            },
        },
        ToolKind::Custom => InputItem::CustomToolCall {
            call_id,
            name,
            input: text,
        },
    }
}

/// Decodes the output of a tool call.
pub(super) fn decode_call_output<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<PartKind<'a>, ApiError> {
    let id = fields.text("call_id")?;
    let id: Text<'a> = fields.need("call_id", id)?;
    let parts = match fields.node("output") {
        Some(node) => content::decode(node, losses)?,
        None => return fields.need("output", None),
    };
    Ok(PartKind::Result(ToolResult {
        id: Some(id),
        name: None,
        parts,
        failed: false,
    }))
}

/// Encodes the output of a tool call of this kind.
pub(super) const fn encode_call_output<'r>(
    kind: ToolKind,
    call_id: Text<'r>,
    output: InputContent<'r>,
) -> InputItem<'r> {
    match kind {
        ToolKind::Function => InputItem::FunctionCallOutput { call_id, output },
        ToolKind::Custom => InputItem::CustomToolCallOutput { call_id, output },
    }
}

/// Encodes an image that the model generated; `None`: the format cannot hold these media. `position`: where in
/// `input` the item will stand.
pub(super) fn encode_image<'r>(media: &'r Media<'_>, position: usize) -> Option<InputItem<'r>> {
    let data = image_data(media)?;
    Some(InputItem::ImageGenerationCall {
        id: format!("ig_{position}"),
        result: base64_text::to_standard(data),
        status: COMPLETED,
    })
}

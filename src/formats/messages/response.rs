//! The JSON response.

use serde::Serialize;

use super::Messages;
use super::blocks::ContentBlock;
use super::call_ids::response_call_id;
use super::calls::{ToolInput, decode_response_tool_use, encode_input, restore_long_numbers};
use super::citations::decode_citation;
use super::stop_reason::{StopReason, decode_stop_reason, encode_stop_reason};
use super::thinking_blocks::{decode_signature, encode_reasoning, encode_redacted_thinking};
use super::usage::{MessagesUsage, decode_usage, encode_usage};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{ErrorCodec, ResponseCodec, ResponseOptions, ids, missing_content};
use crate::json::{Fields, Node};
use crate::model::{
    ApiError, Choice, FieldLocation, Finish, Issuer, Losses, Part, PartKind, Response, Text,
};

impl ResponseCodec for Messages {
    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        let mut fields = Fields::of_body(body).map_err(unreadable)?;
        if fields.take("error").is_some() {
            return Err(Messages.decode_error(200, body));
        }
        let mut response = decode_fields(&mut fields, losses).map_err(unreadable)?;
        for choice in &mut response.choices {
            restore_long_numbers(body, &mut choice.parts);
        }
        Ok(response)
    }

    /// Encodes a response. The format has one choice, so only the first is encoded.
    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8> {
        let source = source_id(&response.id, options);
        let mut message = MessagesResponse::start(source, &response.model, options);
        if response.choices.len() > 1 {
            losses.dropped(FieldLocation::Path("choices".into()));
        }
        if let Some(choice) = response.choices.first() {
            message.content = encode_blocks(choice, source, losses);
            // Citations of the format need an `encrypted_index`, which only its own upstreams have.
            for (field, present) in [
                ("citations", !choice.citations.is_empty()),
                ("logprobs", !choice.logprobs.is_empty()),
            ] {
                if present {
                    losses.dropped(FieldLocation::Path(field.into()));
                }
            }
            message.stop = encode_stop_reason(&choice.finish).with_content(
                has(choice, |part| matches!(part, PartKind::Call(_))),
                has(choice, |part| matches!(part, PartKind::Refusal(_))),
            );
        } else {
            message.stop = encode_stop_reason(&Finish::Other);
        }
        if response.usage.is_some_and(|usage| usage.has_audio()) {
            losses.dropped(FieldLocation::Path("usage: tokens of audio".into()));
        }
        message.usage = encode_usage(response.usage);
        to_json_bytes(&message, response.size())
    }
}

/// Turns an error in a response into the upstream's error: the client is not to blame.
fn unreadable(api_error: ApiError) -> ApiError {
    let why = &api_error.message;
    ApiError::bad_gateway(format!("the upstream's response cannot be decoded: {why}"))
}

fn decode_fields<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Response<'a>, ApiError> {
    let mut choice = Choice {
        parts: Vec::new(),
        citations: Vec::new(),
        logprobs: Vec::new(),
        finish: decode_stop_reason(fields, losses)?,
    };
    let mut characters = 0;
    let content = fields.node("content").ok_or_else(missing_content)?;
    content.each(|at, node| decode_block(at, node, &mut choice, &mut characters, losses))?;
    Ok(Response {
        id: fields.text("id")?.unwrap_or_default(),
        model: fields.text("model")?.unwrap_or_default(),
        created: 0,
        choices: vec![choice],
        usage: decode_usage(fields)?,
    })
}

/// Decodes a content block. `characters`: the length of the text so far, which citations refer to.
fn decode_block<'a>(
    at: u32,
    node: Node<'a, '_>,
    choice: &mut Choice<'a>,
    characters: &mut u64,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    node.fields(|mut fields| {
        let kind = fields.text("type")?.unwrap_or_default();
        let kind = match kind.as_ref() {
            "text" => {
                let text = fields.text("text")?.unwrap_or_default();
                let start = *characters;
                *characters += text.chars().count() as u64;
                fields.each("citations", |_, node| {
                    let citation = decode_citation(node, start, *characters, losses)?;
                    choice.citations.extend(citation);
                    Ok(())
                })?;
                PartKind::Text(text)
            }
            "thinking" => PartKind::Reasoning {
                text: fields.text("thinking")?.unwrap_or_default(),
                signature: decode_signature(&mut fields, "signature", Issuer::Thinking)?,
            },
            "redacted_thinking" => PartKind::Reasoning {
                text: Text::default(),
                signature: decode_signature(&mut fields, "data", Issuer::Redacted)?,
            },
            "tool_use" => PartKind::Call(decode_response_tool_use(&mut fields)?),
            // Blocks of hosted tools: the model repeats their results in its text.
            _ => {
                losses.dropped(FieldLocation::Path(fields.path.to_string().into()));
                return Ok(());
            }
        };
        choice.parts.push(Part { kind, at: Some(at) });
        Ok(())
    })
}

/// A response to a client; also the `message` of `message_start`, then without content.
#[derive(Serialize)]
pub(super) struct MessagesResponse<'a> {
    model: &'a str,
    id: String,
    r#type: &'static str,
    role: &'static str,
    content: Vec<ContentBlock<'a>>,
    #[serde(flatten)]
    stop: StopReason,
    usage: MessagesUsage,
}

impl<'a> MessagesResponse<'a> {
    /// A response without content.
    pub(super) fn start(
        source: &str,
        upstream_model: &'a str,
        options: &'a ResponseOptions,
    ) -> MessagesResponse<'a> {
        let model = match options.model.as_str() {
            "" => upstream_model,
            model => model,
        };
        MessagesResponse {
            model,
            id: ids::response_id("msg_", source),
            r#type: "message",
            role: "assistant",
            content: Vec::new(),
            stop: StopReason::default(),
            usage: MessagesUsage::default(),
        }
    }
}

/// The id that the ids of the response and its calls are derived from. Some upstreams send no id; the
/// request id keeps their responses distinct.
pub(super) fn source_id<'a>(upstream: &'a str, options: &'a ResponseOptions) -> &'a str {
    if upstream.is_empty() {
        &options.request_id
    } else {
        upstream
    }
}

fn has(choice: &Choice<'_>, is: fn(&PartKind<'_>) -> bool) -> bool {
    choice.parts.iter().any(|part| is(&part.kind))
}

fn encode_blocks<'a>(
    choice: &'a Choice<'a>,
    source: &str,
    losses: &mut Losses,
) -> Vec<ContentBlock<'a>> {
    let mut blocks = Vec::new();
    let location =
        |blocks: &Vec<_>| FieldLocation::Path(format!("content[{}]", blocks.len()).into());
    let mut ordinal = 0;
    let is_truncated = matches!(choice.finish, Finish::Length | Finish::ContextFull);
    for part in &choice.parts {
        match &part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) if !text.is_empty() => {
                blocks.push(ContentBlock::Text { text });
            }
            PartKind::Reasoning { text, signature } => {
                blocks.extend(encode_reasoning(text, signature.as_ref()))
            }
            PartKind::Call(call) => {
                let id = response_call_id(call.id.as_ref(), source, ordinal);
                ordinal += 1;
                let input = encode_input(call);
                let is_malformed = matches!(input, ToolInput::Malformed { .. });
                if is_malformed && is_truncated {
                    losses.dropped(location(&blocks));
                    continue;
                }
                blocks.extend(call.signature.as_ref().map(encode_redacted_thinking));
                if is_malformed {
                    losses.approximated(location(&blocks));
                }
                let name = &call.name;
                blocks.push(ContentBlock::ToolUse { id, name, input });
            }
            PartKind::Media(media) => {
                losses.dropped(location(&blocks));
                let text = media_placeholder(&media.mime);
                blocks.extend(text.map(|text| ContentBlock::Text { text }));
            }
            PartKind::Text(_) | PartKind::Refusal(_) | PartKind::Result(_) => {}
        }
    }
    blocks
}

/// The text instead of an image: responses of the format have no media blocks.
pub(super) fn media_placeholder(mime: &str) -> Option<&'static str> {
    (mime.is_empty() || mime.starts_with("image/")).then_some("[image]")
}

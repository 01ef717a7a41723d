//! The JSON response.
//!
//! It is decoded by the structs that a stream's events are decoded by. Its encoder shares the blocks, ids, stop reasons
//! and counts of a stream's, and no more: it sees a call's arguments whole, which a stream sends on before it can check
//! them, and gathering events into blocks again would take more code than it takes to encode the parts.

use serde::Serialize;

use super::Messages;
use super::blocks::ContentBlock;
use super::call_ids::response_call_id;
use super::calls::{ToolInput, encode_input};
use super::citations::decode_citation;
use super::stop_reason::{RawStopDetails, StopReason, decode_stop_reason, encode_stop_reason};
use super::thinking_blocks::{encode_reasoning, encode_redacted_thinking};
use super::usage::{MessagesUsage, RawMessagesUsage, encode_usage};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{
    ErrorCodec, ResponseCodec, ResponseOptions, decode_event_data, decode_response_body, ids,
    missing_content,
};
use crate::json::{Fields, Present, RawJson, from_json};
use crate::model::{
    ApiError, Arguments, Call, Choice, Citation, FieldLocation, Finish, Issuer, Losses, Part,
    PartKind, Response, Signature, Text, ToolKind,
};

from_json! {
    /// A response of an upstream; also the `message` of `message_start`.
    pub(super) struct RawMessage<'a> {
        "id" => pub(super) id: Option<Text<'a>>,
        "model" => pub(super) model: Option<Text<'a>>,
        "content" => pub(super) content: Option<Vec<RawBlock<'a>>>,
        "stop_reason" => pub(super) stop_reason: Option<Text<'a>>,
        "stop_sequence" => pub(super) stop_sequence: Option<Text<'a>>,
        "stop_details" => pub(super) stop_details: Option<RawStopDetails<'a>>,
        "usage" => pub(super) usage: Option<RawMessagesUsage>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    /// A block of a response; also the `content_block` of `content_block_start`. Blocks of hosted tools may have any
    /// value in these fields.
    pub(super) struct RawBlock<'a> {
        "type" required => kind: RawJson<'a>,
        "text" => text: Option<RawJson<'a>>,
        "thinking" => thinking: Option<RawJson<'a>>,
        "signature" => signature: Option<RawJson<'a>>,
        "data" => data: Option<RawJson<'a>>,
        "id" => id: Option<RawJson<'a>>,
        "name" => name: Option<RawJson<'a>>,
        "input" => input: Option<RawJson<'a>>,
        "citations" => citations: Option<RawJson<'a>>,
    }
}

impl<'a> RawBlock<'a> {
    /// Decodes the block. `None`: it is one of a hosted tool, whose results the model repeats in its text.
    pub(super) fn decode(&self) -> Result<Option<PartKind<'a>>, ApiError> {
        let text = |field: Option<RawJson<'a>>| match field {
            Some(raw) => decode_event_data(raw.get()),
            None => Ok(Text::default()),
        };
        let signature = |field, issuer| {
            let signature = text(field).map(|data| Signature { issuer, data });
            signature.map(|signature| Some(signature).filter(|it| !it.data.is_empty()))
        };
        Ok(Some(match self.kind.text().as_deref() {
            Some("text") => PartKind::Text(text(self.text)?),
            Some("thinking") => PartKind::Reasoning {
                text: text(self.thinking)?,
                signature: signature(self.signature, Issuer::Thinking)?,
            },
            Some("redacted_thinking") => PartKind::Reasoning {
                text: Text::default(),
                signature: signature(self.data, Issuer::Redacted)?,
            },
            Some("tool_use") => PartKind::Call(Call {
                id: Some(text(self.id)?).filter(|id| !id.is_empty()),
                name: text(self.name)?,
                arguments: Arguments::Text(self.input.map_or(NO_INPUT, RawJson::get).into()),
                signature: None,
                kind: ToolKind::Function,
            }),
            _ => return Ok(None),
        }))
    }

    /// Decodes the URL and the title of each citation.
    pub(super) fn decode_citations(
        &self,
        losses: &mut Losses,
    ) -> Result<Vec<(Text<'a>, Option<Text<'a>>)>, ApiError> {
        let Some(raw) = self.citations else {
            return Ok(Vec::new());
        };
        let citations: Vec<RawJson<'a>> = decode_event_data(raw.get())?;
        let decoded = citations.into_iter();
        Ok(decoded
            .filter_map(|raw| decode_citation(raw, losses))
            .collect())
    }
}

/// The `input` of a call without arguments.
pub(super) const NO_INPUT: &str = "{}";

impl ResponseCodec for Messages {
    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        let decoded = decode_response_body(body);
        let mut message: RawMessage<'a> =
            decoded.map_err(|api_error| name_unreadable(api_error, body))?;
        if message.error.is_some() {
            return Err(Messages.decode_error(200, body));
        }
        let finish = decode_finish(&mut message, losses);
        let (mut parts, mut citations, mut characters) = (Vec::new(), Vec::new(), 0);
        for (at, block) in (0..).zip(message.content.ok_or_else(missing_content)?) {
            let Some(kind) = block.decode()? else {
                losses.dropped(FieldLocation::Path(format!("content[{at}]").into()));
                continue;
            };
            let start = characters;
            if let PartKind::Text(text) = &kind {
                characters += text.chars().count() as u64;
            }
            let cited = block.decode_citations(losses)?.into_iter();
            citations.extend(cited.map(|(url, title)| Citation {
                url,
                title,
                start,
                end: characters,
            }));
            parts.push(Part { kind, at: Some(at) });
        }
        Ok(Response {
            id: message.id.unwrap_or_default(),
            model: message.model.unwrap_or_default(),
            created: 0,
            choices: vec![Choice {
                parts,
                citations,
                logprobs: Vec::new(),
                finish,
            }],
            usage: message.usage.map(|usage| usage.merge(None)),
        })
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

/// Names the field of a body that cannot be decoded, where that is a block or the list of them.
#[cold]
fn name_unreadable(api_error: ApiError, body: &[u8]) -> ApiError {
    let read = Fields::of_body(body)
        .and_then(|mut fields| fields.each("content", |_, block| block.fields(|_| Ok(()))));
    match read {
        Ok(()) => api_error,
        Err(named) => {
            let why = &named.message;
            ApiError::bad_gateway(format!("the upstream's response cannot be decoded: {why}"))
        }
    }
}

/// Decodes why the response ended, and reports what of it is lost.
fn decode_finish<'a>(message: &mut RawMessage<'a>, losses: &mut Losses) -> Finish<'a> {
    let details = message.stop_details.take();
    if details.as_ref().is_some_and(|it| it.category.is_some()) {
        losses.dropped(FieldLocation::Path("stop_details.category".into()));
    }
    let reason = message.stop_reason.as_deref();
    let finish = decode_stop_reason(reason, message.stop_sequence.take(), details);
    if reason.is_some() && finish == Finish::Other {
        losses.approximated(FieldLocation::Path("stop_reason".into()));
    }
    finish
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

//! The JSON response. It is decoded by the structs that a stream's events are decoded by, and gathered from the blocks
//! that a stream is encoded in.

use serde::Serialize;

use super::Messages;
use super::blocks::{ContentBlock, ContentDelta};
use super::calls::{ToolInput, encode_input};
use super::citations::decode_citation;
use super::content_encoder::{BlockSink, ContentEncoder};
use super::stop_reason::{RawStopDetails, StopReason, decode_stop_reason, encode_stop_reason};
use super::usage::{MessagesUsage, RawMessagesUsage, encode_usage};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{
    ErrorCodec, ResponseCodec, ResponseOptions, decode_event_data, decode_response_body, ids,
    missing_content,
};
use crate::json::{Fields, Present, RawJson, from_json};
use crate::model::{
    ApiError, Arguments, Call, Choice, Citation, FieldLocation, Finish, Issuer, Losses, Part,
    PartKind, Response, Signature, Text, ToolKind, append,
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
        let mut encoder = ContentEncoder::default();
        let mut finish = &Finish::Other;
        if let Some(choice) = response.choices.first() {
            message.content = encode_blocks(choice, source, &mut encoder, losses);
            // Citations of the format need an `encrypted_index`, which only its own upstreams have.
            for (field, present) in [
                ("citations", !choice.citations.is_empty()),
                ("logprobs", !choice.logprobs.is_empty()),
            ] {
                if present {
                    losses.dropped(FieldLocation::Path(field.into()));
                }
            }
            finish = &choice.finish;
        }
        message.stop = encoder.correct(encode_stop_reason(finish));
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

/// Encodes the parts of a choice, and reports what is lost of them by the index of the block in which they would stand.
fn encode_blocks<'a>(
    choice: &'a Choice<'_>,
    source: &str,
    encoder: &mut ContentEncoder<'a>,
    losses: &mut Losses,
) -> Vec<ContentBlock<'a>> {
    let mut blocks = Vec::new();
    let location = |index: usize| FieldLocation::Path(format!("content[{index}]").into());
    let is_truncated = matches!(choice.finish, Finish::Length | Finish::ContextFull);
    for part in &choice.parts {
        let PartKind::Call(call) = &part.kind else {
            if matches!(part.kind, PartKind::Media(_)) {
                losses.dropped(location(blocks.len()));
            }
            let mut encode = |event| encoder.encode_event(event, source, &mut blocks);
            part.kind.unfold(0, &mut encode);
            continue;
        };
        let input = encode_input(call);
        let is_malformed = matches!(input, ToolInput::Malformed { .. });
        if is_malformed && is_truncated {
            losses.dropped(location(blocks.len()));
            encoder.skip_call();
            continue;
        }
        encoder.encode_call(call, input, source, &mut blocks);
        if is_malformed {
            losses.approximated(location(blocks.len() - 1));
        }
    }
    blocks
}

/// Gathers the blocks of a JSON response, whose calls come with their whole input.
impl<'a> BlockSink<'a, 'a> for Vec<ContentBlock<'a>> {
    fn start(&mut self, block: ContentBlock<'a>) {
        self.push(block);
    }

    fn add(&mut self, delta: ContentDelta<'a>) {
        let Some(block) = self.last_mut() else {
            return;
        };
        match (block, delta) {
            (ContentBlock::Text { text }, ContentDelta::Text { text: more }) => append(text, more),
            (
                ContentBlock::Thinking { thinking: text, .. },
                ContentDelta::Thinking { thinking },
            ) => {
                append(text, thinking);
            }
            (
                ContentBlock::Thinking { signature, .. },
                ContentDelta::Signature { signature: all },
            ) => {
                *signature = all;
            }
            _ => {}
        }
    }

    fn stop(&mut self) {}

    fn hold(&self, text: Text<'a>) -> Text<'a> {
        text
    }
}

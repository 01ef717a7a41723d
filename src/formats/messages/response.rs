//! The JSON reply.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::formats::written::written;
use crate::formats::{ResponseOptions, identity};
use crate::model::{
    Arguments, Call, Choice, FieldLocation, Finish, Issuer, Json, Losses, PartKind, Response,
    Signature, Text, ToolKind, Usage,
};

/// Also the beginning of a stream, with nothing said and nothing decided.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    model: &'a str,
    id: String,
    r#type: &'static str,
    role: &'static str,
    content: Vec<Block<'a>>,
    #[serde(flatten)]
    ending: Ending,
    usage: Counts,
}

/// Also what a block in a stream begins as.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: Cow<'a, str>,
    },
    RedactedThinking {
        data: Cow<'a, str>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Input<'a>,
    },
}

/// Always an object on the wire, whatever the upstream's model wrote.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Input<'a> {
    Empty {},
    RawJson(&'a RawValue),
    Tree(&'a Json<'a>),
    /// Of a tool that takes free text.
    Free {
        input: Cow<'a, str>,
    },
    Unreadable {
        #[serde(rename = "_raw")]
        raw: Cow<'a, str>,
    },
}

/// Why the answer ended.
#[derive(Serialize, Default)]
pub(super) struct Ending {
    stop_reason: Option<&'static str>,
    stop_sequence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_details: Option<Details>,
    /// Not even calls in the answer change the reason.
    #[serde(skip)]
    firm: bool,
}

#[derive(Serialize)]
struct Details {
    r#type: &'static str,
    category: Option<&'static str>,
    explanation: String,
}

/// Input is counted without what the cache gave or took.
#[derive(Serialize, Default)]
pub(super) struct Counts {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Serialize)]
struct OutputDetails {
    thinking_tokens: u64,
}

/// Only the first choice: the format knows no others.
pub(super) fn encode(
    response: &Response<'_>,
    asked: &ResponseOptions,
    losses: &mut Losses,
) -> Vec<u8> {
    let source = source_id(&response.id, asked);
    let mut message = Message::begin(source, &response.model, asked);
    if response.choices.len() > 1 {
        losses.dropped(FieldLocation::Path("choices".into()));
    }
    if let Some(choice) = response.choices.first() {
        message.content = blocks(choice, source, losses);
        // Sources need a proof that only the format's own upstreams can give.
        for (what, present) in [
            ("citations", !choice.citations.is_empty()),
            ("logprobs", !choice.logprobs.is_empty()),
        ] {
            if present {
                losses.dropped(FieldLocation::Path(what.into()));
            }
        }
        message.ending = Ending::of(&choice.finish).settle(
            has(choice, |part| matches!(part, PartKind::Call(_))),
            has(choice, |part| matches!(part, PartKind::Refusal(_))),
        );
    } else {
        message.ending = Ending::of(&Finish::Other);
    }
    if response.usage.is_some_and(|usage| usage.has_audio()) {
        losses.dropped(FieldLocation::Path("usage: tokens of sound".into()));
    }
    message.usage = Counts::of(response.usage);
    written(&message, response.size())
}

fn has(choice: &Choice<'_>, is: fn(&PartKind<'_>) -> bool) -> bool {
    choice.parts.iter().any(|part| is(&part.kind))
}

/// Upstreams that give a reply no id must not make all their replies look the same.
pub(super) fn source_id<'a>(upstream: &'a str, asked: &'a ResponseOptions) -> &'a str {
    if upstream.is_empty() {
        &asked.request_id
    } else {
        upstream
    }
}

impl<'a> Message<'a> {
    pub(super) fn begin(
        source: &str,
        upstream_model: &'a str,
        asked: &'a ResponseOptions,
    ) -> Message<'a> {
        let model = match asked.model.as_str() {
            "" => upstream_model,
            asked => asked,
        };
        Message {
            model,
            id: identity::reply_id("msg_", source),
            r#type: "message",
            role: "assistant",
            content: Vec::new(),
            ending: Ending::default(),
            usage: Counts::default(),
        }
    }
}

fn blocks<'a>(choice: &'a Choice<'a>, source: &str, losses: &mut Losses) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    let here = |blocks: &Vec<_>| FieldLocation::Path(format!("content[{}]", blocks.len()).into());
    let mut ordinal = 0;
    let cut_short = matches!(choice.finish, Finish::Length | Finish::ContextFull);
    for part in &choice.parts {
        match &part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) if !text.is_empty() => {
                blocks.push(Block::Text { text });
            }
            PartKind::Reasoning { text, signature } => {
                blocks.extend(thought(text, signature.as_ref()))
            }
            PartKind::Call(call) => {
                let id = call_id(call.id.as_ref(), source, ordinal);
                ordinal += 1;
                let input = input(call);
                let unreadable = matches!(input, Input::Unreadable { .. });
                if unreadable && cut_short {
                    losses.dropped(here(&blocks));
                    continue;
                }
                blocks.extend(call.signature.as_ref().map(redacted));
                if unreadable {
                    losses.approximated(here(&blocks));
                }
                let name = &call.name;
                blocks.push(Block::ToolUse { id, name, input });
            }
            PartKind::Media(media) => {
                losses.dropped(here(&blocks));
                let text = stand_in(&media.mime);
                blocks.extend(text.map(|text| Block::Text { text }));
            }
            PartKind::Text(_) | PartKind::Refusal(_) | PartKind::Result(_) => {}
        }
    }
    blocks
}

/// The format has no media in answers; an image at least leaves a trace.
pub(super) fn stand_in(mime: &str) -> Option<&'static str> {
    (mime.is_empty() || mime.starts_with("image/")).then_some("[image]")
}

pub(super) fn call_id<'a>(id: Option<&'a Text<'a>>, source: &str, ordinal: u32) -> Cow<'a, str> {
    match id {
        Some(id) if !id.is_empty() => Cow::Borrowed(id),
        _ => Cow::Owned(identity::call_id(source, 0, ordinal)),
    }
}

/// Without text, only a block that shows none can carry a foreign signature.
pub(super) fn thought<'a>(
    text: &'a str,
    signature: Option<&'a Signature<'a>>,
) -> Option<Block<'a>> {
    match signature {
        None if text.is_empty() => None,
        Some(signature) if text.is_empty() && signature.issuer != Issuer::Thinking => {
            Some(redacted(signature))
        }
        _ => Some(Block::Thinking {
            thinking: text,
            signature: signature.map_or(Cow::Borrowed(""), |signature| {
                carried(signature, Issuer::Thinking)
            }),
        }),
    }
}

pub(super) fn redacted<'a>(signature: &'a Signature<'a>) -> Block<'a> {
    Block::RedactedThinking {
        data: carried(signature, Issuer::Redacted),
    }
}

/// A signature as it stands in the field that `own` signatures come from.
pub(super) fn carried<'a>(signature: &'a Signature<'a>, own: Issuer) -> Cow<'a, str> {
    if signature.issuer == own {
        Cow::Borrowed(&signature.data)
    } else {
        Cow::Owned(signature.wrap())
    }
}

pub(super) fn input<'a>(call: &'a Call<'a>) -> Input<'a> {
    match &call.arguments {
        arguments if call.kind == ToolKind::Custom => Input::Free {
            input: arguments.to_text(),
        },
        Arguments::Tree(Json::Null) => Input::Empty {},
        Arguments::Tree(tree @ Json::Object(_)) => Input::Tree(tree),
        arguments @ Arguments::Tree(_) => Input::Unreadable {
            raw: arguments.to_text(),
        },
        Arguments::Text(text) if text.trim().is_empty() => Input::Empty {},
        Arguments::Text(text) => match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) if raw.get().starts_with('{') => Input::RawJson(raw),
            _ => Input::Unreadable {
                raw: Cow::Borrowed(text),
            },
        },
    }
}

impl Ending {
    pub(super) fn of(finish: &Finish<'_>) -> Ending {
        let reason = match finish {
            Finish::Stop | Finish::MalformedCall | Finish::Other => "end_turn",
            Finish::StopSequence(_) => "stop_sequence",
            Finish::Length => "max_tokens",
            Finish::ContextFull => "model_context_window_exceeded",
            Finish::Tools => "tool_use",
            Finish::Filtered(_) | Finish::Refused => "refusal",
            Finish::Paused => "pause_turn",
        };
        let mut ending = Ending {
            stop_reason: Some(reason),
            firm: matches!(
                finish,
                Finish::Length | Finish::ContextFull | Finish::Filtered(_)
            ),
            ..Ending::default()
        };
        match finish {
            Finish::StopSequence(Some(text)) => ending.stop_sequence = Some(text.to_string()),
            Finish::Filtered(Some(text)) => {
                ending.stop_details = Some(Details {
                    r#type: "refusal",
                    category: None,
                    explanation: text.to_string(),
                });
            }
            _ => {}
        }
        ending
    }

    /// Clients act on the reason alone: it must tell of calls and refusals that the answer holds.
    pub(super) fn settle(self, calls: bool, refused: bool) -> Ending {
        let reason = match self.stop_reason {
            _ if self.firm => return self,
            _ if calls => "tool_use",
            Some("end_turn") if refused => "refusal",
            _ => return self,
        };
        Ending {
            stop_reason: Some(reason),
            ..Ending::default()
        }
    }
}

impl Counts {
    pub(super) fn of(usage: Option<Usage>) -> Counts {
        let usage = usage.unwrap_or_default();
        let thinking = Some(usage.thinking).filter(|&tokens| tokens > 0);
        // Some backends count the same tokens as read and as written; here the three must add up.
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_written.min(usage.input - cached);
        Counts {
            input_tokens: usage.input - cached - written,
            cache_creation_input_tokens: written,
            cache_read_input_tokens: cached,
            output_tokens: usage.output,
            output_tokens_details: thinking
                .map(|thinking_tokens| OutputDetails { thinking_tokens }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;
    use crate::model::Usage;

    #[test]
    fn the_three_counts_of_input_add_up_to_it() {
        let usage = |cached, cache_written| Usage {
            input: 10,
            cached,
            cache_written,
            ..Usage::default()
        };
        for (cached, written) in [(0, 0), (4, 3), (8, 8), (12, 1)] {
            let counts = Counts::of(Some(usage(cached, written)));
            let sum = counts.input_tokens
                + counts.cache_read_input_tokens
                + counts.cache_creation_input_tokens;
            assert_eq!(sum, 10);
        }
    }
}

//! The events of a stream as they are on the wire.

use serde::Serialize;

use super::super::annotations::{TokenLogprob, UrlCitationAnnotation};
use super::super::output_items::{OutputContent, OutputItem, SummaryText};
use super::super::response_object::ResponseObject;
use crate::json::{Present, RawJson, decode_json, from_json};
use crate::model::{Json, Text};
use crate::sse::SseWriter;

from_json! {
    /// An event as an upstream sends it. Its values stay undecoded until an event of its type needs them.
    pub(super) struct ReceivedEvent<'a> {
        "type" => pub kind: Text<'a>,
        "output_index" => pub output_index: u32,
        "content_index" => pub content_index: u32,
        "summary_index" => pub summary_index: u32,
        "delta" => pub delta: Option<RawJson<'a>>,
        "logprobs" => pub logprobs: Option<RawJson<'a>>,
        "annotation" => pub annotation: Option<RawJson<'a>>,
        "item" => pub item: Option<RawJson<'a>>,
        "response" => pub response: Option<RawJson<'a>>,
        "error" => pub error: Option<Present>,
    }
}

/// Decodes a string; empty where there is none.
pub(super) fn decode_text(raw: Option<RawJson<'_>>) -> Text<'_> {
    raw.and_then(RawJson::text).unwrap_or_default()
}

/// Decodes any value; `null` where there is none.
pub(super) fn decode_value(raw: Option<RawJson<'_>>) -> Json<'_> {
    raw.and_then(|raw| decode_json(raw.get()).ok())
        .unwrap_or_default()
}

/// Numbers the events of a stream.
#[derive(Debug, Default)]
pub(in crate::formats::responses) struct SequenceNumbers(u64);

/// An event as it is encoded.
#[derive(Serialize)]
struct NumberedEvent<'a> {
    r#type: &'static str,
    sequence_number: u64,
    #[serde(flatten)]
    body: EventBody<'a>,
}

impl From<u64> for SequenceNumbers {
    /// Continues with this number.
    fn from(next: u64) -> SequenceNumbers {
        SequenceNumbers(next)
    }
}

impl SequenceNumbers {
    /// Takes the next number.
    pub(in crate::formats::responses) fn next(&mut self) -> u64 {
        // An upstream may have begun with any number.
        let after = self.0.saturating_add(1);
        std::mem::replace(&mut self.0, after)
    }

    /// Writes an event under the next number.
    pub(in crate::formats::responses) fn send(
        &mut self,
        name: &'static str,
        body: EventBody<'_>,
        out: &mut SseWriter,
    ) {
        let event = NumberedEvent {
            r#type: name,
            sequence_number: self.next(),
            body,
        };
        out.event(name, &event);
    }
}

/// The item that an event belongs to.
#[derive(Serialize, Clone, Copy)]
pub(in crate::formats::responses) struct ItemPosition<'a> {
    pub item_id: &'a str,
    pub output_index: usize,
}

/// The fields of an event besides its type and number.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::formats::responses) enum EventBody<'a> {
    /// Borrowed, since it is rare and large: the size of this enum is that of a delta.
    Response {
        response: &'a ResponseObject<'a>,
    },
    Item {
        output_index: usize,
        item: &'a OutputItem<'a>,
    },
    Progress(ItemPosition<'a>),
    Content {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        content_index: usize,
        part: &'a OutputContent<'a>,
    },
    TextDelta {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        content_index: usize,
        delta: &'a str,
        logprobs: &'a [TokenLogprob<'a>],
    },
    TextDone {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        content_index: usize,
        text: &'a str,
        logprobs: &'a [TokenLogprob<'a>],
    },
    Annotation {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        content_index: usize,
        annotation_index: usize,
        annotation: &'a UrlCitationAnnotation<'a>,
    },
    RefusalDelta {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        content_index: usize,
        delta: &'a str,
    },
    RefusalDone {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        content_index: usize,
        refusal: &'a str,
    },
    Summary {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        summary_index: usize,
        part: &'a SummaryText<'a>,
    },
    SummaryDelta {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        summary_index: usize,
        delta: &'a str,
    },
    SummaryDone {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        summary_index: usize,
        text: &'a str,
    },
    CallDelta {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        delta: &'a str,
    },
    ArgumentsDone {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        arguments: &'a str,
    },
    InputDone {
        #[serde(flatten)]
        at: ItemPosition<'a>,
        input: &'a str,
    },
}

/// The position of an item.
pub(super) fn position_of<'a>(output_index: usize, item: &'a OutputItem<'_>) -> ItemPosition<'a> {
    ItemPosition {
        item_id: item.id(),
        output_index,
    }
}

/// The type of an event and its other fields.
type NamedEvent<'a> = (&'static str, EventBody<'a>);

/// Encodes more of what the item contains; `None`: items of its type have no deltas.
pub(super) fn encode_delta<'a>(
    at: ItemPosition<'a>,
    item: &'a OutputItem<'_>,
    delta: &'a str,
) -> Option<NamedEvent<'a>> {
    Some(match item {
        OutputItem::Message { content, .. } => {
            let content_index = content.len().checked_sub(1)?;
            match &content[content_index] {
                OutputContent::OutputText { .. } => {
                    let logprobs = &[];
                    let body = EventBody::TextDelta {
                        at,
                        content_index,
                        delta,
                        logprobs,
                    };
                    ("response.output_text.delta", body)
                }
                OutputContent::Refusal { .. } => {
                    let body = EventBody::RefusalDelta {
                        at,
                        content_index,
                        delta,
                    };
                    ("response.refusal.delta", body)
                }
            }
        }
        OutputItem::Reasoning { summary, .. } => {
            let summary_index = summary.len().checked_sub(1)?;
            let body = EventBody::SummaryDelta {
                at,
                summary_index,
                delta,
            };
            ("response.reasoning_summary_text.delta", body)
        }
        OutputItem::FunctionCall { .. } => {
            let body = EventBody::CallDelta { at, delta };
            ("response.function_call_arguments.delta", body)
        }
        OutputItem::CustomToolCall { .. } => {
            let body = EventBody::CallDelta { at, delta };
            ("response.custom_tool_call_input.delta", body)
        }
        OutputItem::ImageGenerationCall { .. } => return None,
    })
}

/// Encodes the events that repeat the last part of an item as a whole.
pub(super) fn encode_done<'a>(
    at: ItemPosition<'a>,
    item: &'a OutputItem<'_>,
) -> [Option<NamedEvent<'a>>; 2] {
    match item {
        OutputItem::Message { content, .. } => match content.last() {
            Some(part) => encode_content_done(at, content.len() - 1, part),
            None => [None, None],
        },
        OutputItem::Reasoning { summary, .. } => match summary.last() {
            Some(part) => encode_summary_done(at, summary.len() - 1, part),
            None => [None, None],
        },
        OutputItem::FunctionCall { arguments, .. } => {
            let body = EventBody::ArgumentsDone { at, arguments };
            [Some(("response.function_call_arguments.done", body)), None]
        }
        OutputItem::CustomToolCall { input, .. } => {
            let body = EventBody::InputDone { at, input };
            [Some(("response.custom_tool_call_input.done", body)), None]
        }
        OutputItem::ImageGenerationCall { .. } => [
            Some((
                "response.image_generation_call.in_progress",
                EventBody::Progress(at),
            )),
            Some((
                "response.image_generation_call.completed",
                EventBody::Progress(at),
            )),
        ],
    }
}

fn encode_content_done<'a>(
    at: ItemPosition<'a>,
    content_index: usize,
    part: &'a OutputContent<'_>,
) -> [Option<NamedEvent<'a>>; 2] {
    let whole = match part {
        OutputContent::OutputText { text, logprobs, .. } => {
            let body = EventBody::TextDone {
                at,
                content_index,
                text,
                logprobs,
            };
            ("response.output_text.done", body)
        }
        OutputContent::Refusal { refusal } => {
            let body = EventBody::RefusalDone {
                at,
                content_index,
                refusal,
            };
            ("response.refusal.done", body)
        }
    };
    let body = EventBody::Content {
        at,
        content_index,
        part,
    };
    [Some(whole), Some(("response.content_part.done", body))]
}

fn encode_summary_done<'a>(
    at: ItemPosition<'a>,
    summary_index: usize,
    part: &'a SummaryText<'_>,
) -> [Option<NamedEvent<'a>>; 2] {
    let text = EventBody::SummaryDone {
        at,
        summary_index,
        text: &part.text,
    };
    let whole = EventBody::Summary {
        at,
        summary_index,
        part,
    };
    [
        Some(("response.reasoning_summary_text.done", text)),
        Some(("response.reasoning_summary_part.done", whole)),
    ]
}

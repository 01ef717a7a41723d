//! The events of a stream, numbered.

use serde::Serialize;

use super::reply::{Annotation, Content, Item, Reply, Summary, TokenLogprob};
use crate::sse::SseWriter;

#[derive(Debug, Default)]
pub(super) struct Sequence(u64);

#[derive(Serialize)]
struct Numbered<'a> {
    r#type: &'static str,
    sequence_number: u64,
    #[serde(flatten)]
    body: Body<'a>,
}

impl From<u64> for Sequence {
    /// Goes on with this number.
    fn from(next: u64) -> Sequence {
        Sequence(next)
    }
}

impl Sequence {
    pub(super) fn next(&mut self) -> u64 {
        // An upstream may have begun with any number.
        let after = self.0.saturating_add(1);
        std::mem::replace(&mut self.0, after)
    }

    pub(super) fn send(&mut self, name: &'static str, body: Body<'_>, out: &mut SseWriter) {
        let event = Numbered {
            r#type: name,
            sequence_number: self.next(),
            body,
        };
        out.event(name, &event);
    }
}

/// The item an event is about.
#[derive(Serialize, Clone, Copy)]
pub(super) struct At<'a> {
    pub item_id: &'a str,
    pub output_index: usize,
}

/// What an event says besides its name and number.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Body<'a> {
    /// Rare and large: deltas are not to be moved about in its room.
    Response {
        response: &'a Reply<'a>,
    },
    Item {
        output_index: usize,
        item: &'a Item<'a>,
    },
    Progress(At<'a>),
    Content {
        #[serde(flatten)]
        at: At<'a>,
        content_index: usize,
        part: &'a Content<'a>,
    },
    TextDelta {
        #[serde(flatten)]
        at: At<'a>,
        content_index: usize,
        delta: &'a str,
        logprobs: &'a [TokenLogprob<'a>],
    },
    TextDone {
        #[serde(flatten)]
        at: At<'a>,
        content_index: usize,
        text: &'a str,
        logprobs: &'a [TokenLogprob<'a>],
    },
    Annotation {
        #[serde(flatten)]
        at: At<'a>,
        content_index: usize,
        annotation_index: usize,
        annotation: &'a Annotation<'a>,
    },
    RefusalDelta {
        #[serde(flatten)]
        at: At<'a>,
        content_index: usize,
        delta: &'a str,
    },
    RefusalDone {
        #[serde(flatten)]
        at: At<'a>,
        content_index: usize,
        refusal: &'a str,
    },
    Summary {
        #[serde(flatten)]
        at: At<'a>,
        summary_index: usize,
        part: &'a Summary<'a>,
    },
    SummaryDelta {
        #[serde(flatten)]
        at: At<'a>,
        summary_index: usize,
        delta: &'a str,
    },
    SummaryDone {
        #[serde(flatten)]
        at: At<'a>,
        summary_index: usize,
        text: &'a str,
    },
    CallDelta {
        #[serde(flatten)]
        at: At<'a>,
        delta: &'a str,
    },
    ArgumentsDone {
        #[serde(flatten)]
        at: At<'a>,
        arguments: &'a str,
    },
    InputDone {
        #[serde(flatten)]
        at: At<'a>,
        input: &'a str,
    },
}

pub(super) fn at<'a>(output_index: usize, item: &'a Item<'_>) -> At<'a> {
    At {
        item_id: item.id(),
        output_index,
    }
}

type Named<'a> = (&'static str, Body<'a>);

/// More of what the item is writing.
pub(super) fn delta_event<'a>(at: At<'a>, item: &'a Item<'_>, delta: &'a str) -> Option<Named<'a>> {
    Some(match item {
        Item::Message { content, .. } => {
            let content_index = content.len().checked_sub(1)?;
            match &content[content_index] {
                Content::OutputText { .. } => {
                    let logprobs = &[];
                    let body = Body::TextDelta {
                        at,
                        content_index,
                        delta,
                        logprobs,
                    };
                    ("response.output_text.delta", body)
                }
                Content::Refusal { .. } => {
                    let body = Body::RefusalDelta {
                        at,
                        content_index,
                        delta,
                    };
                    ("response.refusal.delta", body)
                }
            }
        }
        Item::Reasoning { summary, .. } => {
            let summary_index = summary.len().checked_sub(1)?;
            let body = Body::SummaryDelta {
                at,
                summary_index,
                delta,
            };
            ("response.reasoning_summary_text.delta", body)
        }
        Item::FunctionCall { .. } => {
            let body = Body::CallDelta { at, delta };
            ("response.function_call_arguments.delta", body)
        }
        Item::CustomToolCall { .. } => {
            let body = Body::CallDelta { at, delta };
            ("response.custom_tool_call_input.delta", body)
        }
        Item::ImageGenerationCall { .. } => return None,
    })
}

/// What the item wrote last, as a whole.
pub(super) fn done_events<'a>(at: At<'a>, item: &'a Item<'_>) -> [Option<Named<'a>>; 2] {
    match item {
        Item::Message { content, .. } => match content.last() {
            Some(part) => content_done(at, content.len() - 1, part),
            None => [None, None],
        },
        Item::Reasoning { summary, .. } => match summary.last() {
            Some(part) => summary_done(at, summary.len() - 1, part),
            None => [None, None],
        },
        Item::FunctionCall { arguments, .. } => {
            let body = Body::ArgumentsDone { at, arguments };
            [Some(("response.function_call_arguments.done", body)), None]
        }
        Item::CustomToolCall { input, .. } => {
            let body = Body::InputDone { at, input };
            [Some(("response.custom_tool_call_input.done", body)), None]
        }
        Item::ImageGenerationCall { .. } => [
            Some((
                "response.image_generation_call.in_progress",
                Body::Progress(at),
            )),
            Some((
                "response.image_generation_call.completed",
                Body::Progress(at),
            )),
        ],
    }
}

fn content_done<'a>(
    at: At<'a>,
    content_index: usize,
    part: &'a Content<'_>,
) -> [Option<Named<'a>>; 2] {
    let whole = match part {
        Content::OutputText { text, logprobs, .. } => {
            let body = Body::TextDone {
                at,
                content_index,
                text,
                logprobs,
            };
            ("response.output_text.done", body)
        }
        Content::Refusal { refusal } => {
            let body = Body::RefusalDone {
                at,
                content_index,
                refusal,
            };
            ("response.refusal.done", body)
        }
    };
    let body = Body::Content {
        at,
        content_index,
        part,
    };
    [Some(whole), Some(("response.content_part.done", body))]
}

fn summary_done<'a>(
    at: At<'a>,
    summary_index: usize,
    part: &'a Summary<'_>,
) -> [Option<Named<'a>>; 2] {
    let text = Body::SummaryDone {
        at,
        summary_index,
        text: &part.text,
    };
    let whole = Body::Summary {
        at,
        summary_index,
        part,
    };
    [
        Some(("response.reasoning_summary_text.done", text)),
        Some(("response.reasoning_summary_part.done", whole)),
    ]
}

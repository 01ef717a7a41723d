//! The reply object and its output items, as the JSON reply and the stream both spell them.

use serde::Serialize;

use super::error;
use crate::model::{ApiError, Citation, Finish, Logprob, Text, Usage};

/// Every key that a client's types insist on; of what the request said only its thread is repeated.
#[derive(Serialize)]
pub(super) struct Reply<'a> {
    pub id: &'a str,
    pub object: &'static str,
    pub created_at: i64,
    pub status: &'static str,
    pub error: Option<Failure<'a>>,
    pub incomplete_details: Option<Incomplete>,
    pub model: &'a str,
    pub output: &'a [Item<'a>],
    pub parallel_tool_calls: bool,
    pub tool_choice: &'static str,
    pub tools: [(); 0],
    pub usage: Option<Counts>,
    #[serde(flatten)]
    pub thread: Option<Told<'a>>,
}

#[derive(Serialize, Clone, Copy)]
pub(super) struct Told<'a> {
    pub previous_response_id: Option<&'a str>,
    pub store: bool,
}

impl<'a> Reply<'a> {
    pub(super) const fn new(id: &'a str, created_at: i64, model: &'a str) -> Reply<'a> {
        Reply {
            id,
            object: "response",
            created_at,
            status: IN_PROGRESS,
            error: None,
            incomplete_details: None,
            model,
            output: &[],
            parallel_tool_calls: true,
            tool_choice: "auto",
            tools: [],
            usage: None,
            thread: None,
        }
    }

    pub(super) fn failed(
        id: &'a str,
        created_at: i64,
        model: &'a str,
        api_error: &'a ApiError,
    ) -> Reply<'a> {
        Reply {
            status: FAILED,
            error: Some(Failure {
                code: error::code(api_error.kind),
                message: &api_error.message,
            }),
            ..Reply::new(id, created_at, model)
        }
    }
}

#[derive(Serialize)]
pub(super) struct Failure<'a> {
    pub code: &'static str,
    pub message: &'a str,
}

#[derive(Serialize, Clone, Copy)]
pub(super) struct Incomplete {
    pub reason: &'static str,
}

/// The details are required even where they are 0.
#[derive(Serialize)]
pub(super) struct Counts {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Serialize)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl From<Usage> for Counts {
    fn from(usage: Usage) -> Counts {
        Counts {
            input_tokens: usage.input,
            input_tokens_details: InputDetails {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.cache_written,
            },
            output_tokens: usage.output,
            output_tokens_details: OutputDetails {
                reasoning_tokens: usage.thinking,
            },
            total_tokens: usage.input.saturating_add(usage.output),
        }
    }
}

pub(super) const IN_PROGRESS: &str = "in_progress";
pub(super) const COMPLETED: &str = "completed";
pub(super) const INCOMPLETE: &str = "incomplete";
const FAILED: &str = "failed";

/// Status of the reply and of its last item, and why it is not complete.
pub(super) type Ending = (&'static str, Option<Incomplete>);

pub(super) fn ending(finish: &Finish<'_>) -> Ending {
    let reason = match finish {
        Finish::Length | Finish::ContextFull => "max_output_tokens",
        Finish::Filtered(_) => "content_filter",
        Finish::Stop
        | Finish::StopSequence(_)
        | Finish::Tools
        | Finish::Refused
        | Finish::Paused
        | Finish::MalformedCall
        | Finish::Other => return (COMPLETED, None),
    };
    (INCOMPLETE, Some(Incomplete { reason }))
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message {
        id: String,
        status: &'static str,
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    Reasoning {
        id: String,
        summary: Vec<Summary<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
    },
    FunctionCall {
        id: String,
        call_id: Text<'a>,
        name: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        arguments: Text<'a>,
        status: &'static str,
    },
    CustomToolCall {
        id: String,
        call_id: Text<'a>,
        name: Text<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        input: Text<'a>,
        status: &'static str,
    },
    ImageGenerationCall {
        id: String,
        result: Option<Text<'a>>,
        status: &'static str,
    },
}

impl Item<'_> {
    pub(super) fn id(&self) -> &str {
        match self {
            Item::Message { id, .. }
            | Item::Reasoning { id, .. }
            | Item::FunctionCall { id, .. }
            | Item::CustomToolCall { id, .. }
            | Item::ImageGenerationCall { id, .. } => id,
        }
    }

    pub(super) fn set_status(&mut self, new: &'static str) {
        match self {
            Item::Message { status, .. }
            | Item::FunctionCall { status, .. }
            | Item::CustomToolCall { status, .. } => *status = new,
            // An image is there as a whole or not at all.
            Item::ImageGenerationCall { status, .. } => *status = COMPLETED,
            Item::Reasoning { .. } => {}
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content<'a> {
    OutputText {
        text: Text<'a>,
        annotations: Vec<Annotation<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        logprobs: Vec<TokenLogprob<'a>>,
    },
    Refusal {
        refusal: Text<'a>,
    },
}

impl Content<'_> {
    pub(super) const fn text() -> Content<'static> {
        Content::OutputText {
            text: Text::Borrowed(""),
            annotations: Vec::new(),
            logprobs: Vec::new(),
        }
    }

    pub(super) const fn refusal() -> Content<'static> {
        Content::Refusal {
            refusal: Text::Borrowed(""),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "summary_text")]
pub(super) struct Summary<'a> {
    pub text: Text<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "url_citation")]
pub(super) struct Annotation<'a> {
    start_index: u64,
    end_index: u64,
    url: Text<'a>,
    title: Text<'a>,
}

impl<'a> Annotation<'a> {
    /// `start`: where the text that is cited for begins within the choice's text.
    pub(super) fn new(citation: Citation<'a>, start: u64) -> Annotation<'a> {
        Annotation {
            start_index: citation.start.saturating_sub(start),
            end_index: citation.end.saturating_sub(start),
            url: citation.url,
            title: citation.title.unwrap_or_default(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct TokenLogprob<'a> {
    #[serde(flatten)]
    token: Token<'a>,
    top_logprobs: Vec<Token<'a>>,
}

#[derive(Serialize)]
struct Token<'a> {
    bytes: Vec<u8>,
    logprob: f64,
    token: Text<'a>,
}

impl<'a> From<Logprob<'a>> for TokenLogprob<'a> {
    fn from(logprob: Logprob<'a>) -> TokenLogprob<'a> {
        let token = |(token, logprob): (Text<'a>, f64)| Token {
            bytes: token.as_bytes().to_vec(),
            logprob,
            token,
        };
        TokenLogprob {
            token: token((logprob.token, logprob.logprob)),
            top_logprobs: logprob.top.into_iter().map(token).collect(),
        }
    }
}

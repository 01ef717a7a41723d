//! The `logprobs` of a choice.

use serde::Serialize;

use crate::json::from_json;
use crate::model::{Logprob, Text};

from_json! {
    /// The `logprobs` of a response or a chunk.
    pub(super) struct CompletionLogprobs<'a> {
        "content" => content: Option<Vec<CompletionTokenLogprob<'a>>>,
    }
}

from_json! {
    struct CompletionTokenLogprob<'a> {
        "token" required => token: Text<'a>,
        "logprob" => logprob: Option<f64>,
        "top_logprobs" => top_logprobs: Option<Vec<CompletionTokenLogprob<'a>>>,
    }
}

/// Decodes the log probabilities of the content's tokens.
pub(super) fn decode_logprobs<'a>(
    logprobs: Option<Box<CompletionLogprobs<'a>>>,
) -> impl Iterator<Item = Logprob<'a>> + use<'a> {
    let tokens = logprobs.and_then(|logprobs| logprobs.content);
    tokens.into_iter().flatten().map(|token| {
        let top = token.top_logprobs.unwrap_or_default();
        Logprob {
            token: token.token,
            logprob: token.logprob.unwrap_or_default(),
            top: top
                .into_iter()
                .map(|other| (other.token, other.logprob.unwrap_or_default()))
                .collect(),
        }
    })
}

/// The encoded `logprobs` of a choice.
#[derive(Serialize)]
pub(super) struct ChatLogprobs<'a> {
    content: Vec<ChatTokenLogprob<'a>>,
    refusal: Option<&'static str>,
}

#[derive(Serialize)]
struct ChatTokenLogprob<'a> {
    #[serde(flatten)]
    top: ChatTopLogprob<'a>,
    top_logprobs: Vec<ChatTopLogprob<'a>>,
}

#[derive(Serialize)]
struct ChatTopLogprob<'a> {
    token: &'a str,
    logprob: f64,
    /// Unknown: a token may hold parts of characters.
    bytes: Option<&'a [u8]>,
}

impl<'a> ChatLogprobs<'a> {
    /// Encodes the log probabilities of tokens.
    pub(super) fn new(logprobs: &'a [Logprob<'_>]) -> ChatLogprobs<'a> {
        let top = |token: &'a Text<'_>, logprob| ChatTopLogprob {
            token,
            logprob,
            bytes: None,
        };
        let token = |logprob: &'a Logprob<'_>| ChatTokenLogprob {
            top: top(&logprob.token, logprob.logprob),
            top_logprobs: logprob.top.iter().map(|(t, p)| top(t, *p)).collect(),
        };
        ChatLogprobs {
            content: logprobs.iter().map(token).collect(),
            refusal: None,
        }
    }
}

//! A reply, or a piece of one, as upstreams of this format and of its dialects write it.

use serde_json::Value;

use super::usage::RawUsage;
use crate::formats::few::Few;
use crate::json::{DecodeResult, FromJson, JsonReader, RawJson, from_json};
use crate::model::{ApiError, Finish, Json, Logprob, PROMPT_BLOCKED, Text, Usage};

from_json! {
    /// A whole reply and a piece of a stream differ only in the key of what is said. What is rare
    /// stands in a box, so that a piece is small.
    pub(super) struct Reply<'a> {
        "id" => pub(super) id: Option<Text<'a>>,
        "model" => pub(super) model: Option<Text<'a>>,
        "created" => created: Option<f64>,
        "choices" => pub(super) choices: Option<Few<Choice<'a>>>,
        "usage" => usage: Option<RawUsage>,
        "x_groq" => x_groq: Option<Box<Groq<'a>>>,
        "error" => pub(super) error: Option<RawJson<'a>>,
        /// What one dialect's filters made of the prompt.
        "prompt_filter_results" => prompt_filter_results: Option<RawJson<'a>>,
    }
}

from_json! {
    /// One dialect tells the usage and the failure of a stream here.
    struct Groq<'a> {
        "usage" => usage: Option<RawUsage>,
        "error" => error: Option<RawJson<'a>>,
    }
}

from_json! {
    pub(super) struct Choice<'a> {
        "index" => pub(super) index: Option<u32>,
        "message" => pub(super) message: Option<Box<Said<'a>>>,
        "delta" => pub(super) delta: Option<Said<'a>>,
        "logprobs" => logprobs: Option<Box<Logprobs<'a>>>,
        "finish_reason" => pub(super) finish_reason: Option<Text<'a>>,
        "error" => pub(super) error: Option<RawJson<'a>>,
    }
}

from_json! {
    /// A message or a delta of one.
    pub(super) struct Said<'a> {
        "content" => pub(super) content: Option<Content<'a>>,
        "refusal" => pub(super) refusal: Option<Text<'a>>,
        "reasoning_content" => pub(super) reasoning_content: Option<Text<'a>>,
        "reasoning" => pub(super) reasoning: Option<Text<'a>>,
        "reasoning_details" => pub(super) reasoning_details: Option<Vec<ReasoningDetail<'a>>>,
        "tool_calls" => pub(super) tool_calls: Option<Few<ToolCall<'a>>>,
        "function_call" => pub(super) function_call: Option<Box<Called<'a>>>,
        "annotations" => pub(super) annotations: Option<Vec<Annotation<'a>>>,
        "images" => pub(super) images: Option<Vec<Image<'a>>>,
        "audio" => pub(super) audio: Option<Box<Audio<'a>>>,
    }
}

from_json! {
    /// Sound, and the words that are spoken in it.
    pub(super) struct Audio<'a> {
        "data" => pub(super) data: Option<Text<'a>>,
        "transcript" => pub(super) transcript: Option<Text<'a>>,
    }
}

/// A string, or a list of parts in one dialect.
pub(super) enum Content<'a> {
    Text(Text<'a>),
    Parts(Vec<ContentPart<'a>>),
}

from_json! {
    pub(super) struct ContentPart<'a> {
        "text" => pub(super) text: Option<Text<'a>>,
        "thinking" => pub(super) thinking: Option<Content<'a>>,
        "refusal" => pub(super) refusal: Option<Text<'a>>,
        "image_url" => pub(super) image_url: Option<Address<'a>>,
    }
}

from_json! {
    pub(super) struct ReasoningDetail<'a> {
        "text" => pub(super) text: Option<Text<'a>>,
        "summary" => pub(super) summary: Option<Text<'a>>,
        "signature" => pub(super) signature: Option<Text<'a>>,
        "data" => pub(super) data: Option<Text<'a>>,
        /// The call that the data belong to.
        "id" => pub(super) id: Option<Text<'a>>,
    }
}

from_json! {
    pub(super) struct ToolCall<'a> {
        "index" => pub(super) index: Option<u32>,
        "id" => pub(super) id: Option<Text<'a>>,
        "function" => pub(super) function: Option<Called<'a>>,
        "custom" => pub(super) custom: Option<Box<Called<'a>>>,
    }
}

from_json! {
    pub(super) struct Called<'a> {
        "name" => pub(super) name: Option<Text<'a>>,
        /// A string, or the object itself in careless dialects.
        "arguments" | "input" => pub(super) arguments: Option<Json<'a>>,
    }
}

from_json! {
    pub(super) struct Annotation<'a> {
        "url_citation" => pub(super) url_citation: Option<UrlCitation<'a>>,
    }
}

from_json! {
    pub(super) struct UrlCitation<'a> {
        "url" => pub(super) url: Option<Text<'a>>,
        "title" => pub(super) title: Option<Text<'a>>,
        "start_index" => pub(super) start_index: Option<u64>,
        "end_index" => pub(super) end_index: Option<u64>,
    }
}

from_json! {
    pub(super) struct Image<'a> {
        "image_url" => pub(super) image_url: Option<Address<'a>>,
    }
}

from_json! {
    pub(super) struct Address<'a> {
        "url" required => pub(super) url: Text<'a>,
    }
}

from_json! {
    struct Logprobs<'a> {
        "content" => content: Option<Vec<Token<'a>>>,
    }
}

from_json! {
    struct Token<'a> {
        "token" required => token: Text<'a>,
        "logprob" => logprob: Option<f64>,
        "top_logprobs" => top_logprobs: Option<Vec<Token<'a>>>,
    }
}

impl Default for Content<'_> {
    fn default() -> Self {
        Content::Text(Text::default())
    }
}

impl<'a> FromJson<'a> for Content<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        *self = match reader.peek() {
            Some(b'"') => Content::Text(reader.text()?),
            Some(b'[') => {
                let mut parts = Vec::new();
                parts.decode(reader)?;
                Content::Parts(parts)
            }
            _ => return Err(reader.stop("a string or a list of parts")),
        };
        Ok(())
    }
}

impl<'a> Reply<'a> {
    pub(super) fn created(&self) -> i64 {
        self.created.map_or(0, |seconds| seconds as i64)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        let beside = self.x_groq.as_ref().and_then(|groq| groq.usage.as_ref());
        self.usage.as_ref().or(beside).map(RawUsage::read)
    }

    /// Whether a filter did not let the prompt pass.
    pub(super) fn is_prompt_blocked(&self) -> bool {
        let Some(results) = self.prompt_filter_results else {
            return false;
        };
        let results: Value = serde_json::from_str(results.get()).unwrap_or_default();
        let of_prompts = results.as_array().into_iter().flatten();
        let filters = of_prompts.filter_map(|prompt| prompt["content_filter_results"].as_object());
        filters
            .flat_map(serde_json::Map::values)
            .any(|filter| filter["filtered"] == true)
    }

    /// A failure told inside of a reply that began well.
    pub(super) fn api_error(&self) -> Option<ApiError> {
        let beside = self.x_groq.as_ref().and_then(|groq| groq.error);
        self.error.or(beside).map(fault_of)
    }
}

impl<'a> Choice<'a> {
    pub(super) fn logprobs(&mut self) -> impl Iterator<Item = Logprob<'a>> + use<'a> {
        let tokens = self.logprobs.take().and_then(|logprobs| logprobs.content);
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

    /// Whether it ended in a way that no dialect is known for.
    pub(super) fn is_oddly_finished(&self) -> bool {
        let word = self.finish_reason.as_deref().unwrap_or_default();
        !matches!(
            word,
            "" | "stop"
                | "eos"
                | "length"
                | "model_length"
                | "tool_calls"
                | "function_call"
                | "content_filter"
                | "error"
        )
    }

    /// The reason that the wire gives; what was said has the last word.
    pub(super) fn finish(&self, said: Summary) -> Result<Option<Finish<'static>>, ApiError> {
        let word = self.finish_reason.as_deref();
        match (word, self.error) {
            (Some("error"), None) => Err(ApiError::bad_gateway("the upstream failed to answer")),
            (_, Some(error)) => Err(fault_of(error)),
            (None | Some(""), None) => Ok(None),
            (Some("length" | "model_length"), None) => Ok(Some(Finish::Length)),
            (Some("content_filter"), None) => Ok(Some(Finish::Filtered(said.filter_words()))),
            (Some("tool_calls" | "function_call"), None) => Ok(Some(Finish::Tools)),
            (Some(_), None) => Ok(Some(said.finish())),
        }
    }
}

/// What a choice holds, as far as its finish depends on it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Summary {
    pub(super) has_calls: bool,
    pub(super) has_refusal: bool,
    /// A filter did not let the prompt pass.
    pub(super) is_prompt_blocked: bool,
}

impl Summary {
    fn filter_words(self) -> Option<Text<'static>> {
        let is_silent = !self.has_calls && !self.has_refusal;
        (is_silent && self.is_prompt_blocked).then(|| format!("{PROMPT_BLOCKED}SAFETY").into())
    }

    /// How a choice ended that did not say so, or said only that it did.
    pub(super) const fn finish(self) -> Finish<'static> {
        match self {
            Summary {
                has_calls: true, ..
            } => Finish::Tools,
            Summary {
                has_refusal: true, ..
            } => Finish::Refused,
            _ => Finish::Stop,
        }
    }
}

fn fault_of(error: RawJson<'_>) -> ApiError {
    super::error::decode(200, format!(r#"{{"error":{}}}"#, error.get()).as_bytes())
}

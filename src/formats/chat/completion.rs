//! The chat completion object and its chunks, as upstreams of this format and of its dialects send
//! them.
//!
//! Types named `Completion…` are decoded from the bodies of upstreams; types named `Chat…` are encoded.

use smallvec::SmallVec;

use super::error::decode_error;
use super::finish_reason::{ChoiceSummary, decode_finish_reason};
use super::logprobs::{CompletionLogprobs, decode_logprobs};
use super::message::CompletionMessage;
use super::usage::CompletionUsage;
use crate::json::{RawJson, decode_value, from_json};
use crate::model::{ApiError, Finish, Logprob, Text, Usage};

from_json! {
    /// A JSON response or one chunk of a stream: they differ only in `message` and `delta`. Rare fields
    /// are boxed, so that a chunk stays small.
    pub(super) struct Completion<'a> {
        "id" => pub(super) id: Option<Text<'a>>,
        "model" => pub(super) model: Option<Text<'a>>,
        "created" => created: Option<f64>,
        "choices" => pub(super) choices: Option<SmallVec<[CompletionChoice<'a>; 1]>>,
        "usage" => usage: Option<CompletionUsage>,
        "x_groq" => x_groq: Option<Box<GroqExtension<'a>>>,
        "error" => pub(super) error: Option<RawJson<'a>>,
        /// The results of the content filters of Azure OpenAI.
        "prompt_filter_results" => prompt_filter_results: Option<RawJson<'a>>,
    }
}

from_json! {
    /// The field in which Groq sends the usage and the error of a stream.
    struct GroqExtension<'a> {
        "usage" => usage: Option<CompletionUsage>,
        "error" => error: Option<RawJson<'a>>,
    }
}

from_json! {
    /// One choice of a response or of a chunk.
    pub(super) struct CompletionChoice<'a> {
        "index" => pub(super) index: Option<u32>,
        "message" => pub(super) message: Option<Box<CompletionMessage<'a>>>,
        "delta" => pub(super) delta: Option<CompletionMessage<'a>>,
        "logprobs" => logprobs: Option<Box<CompletionLogprobs<'a>>>,
        "finish_reason" => pub(super) finish_reason: Option<Text<'a>>,
        "error" => pub(super) error: Option<RawJson<'a>>,
        /// Moonshot reports the usage of streams here.
        "usage" => usage: Option<Box<CompletionUsage>>,
    }
}

impl Completion<'_> {
    /// The Unix time of creation, 0 if unknown.
    pub(super) fn created(&self) -> i64 {
        self.created.map_or(0, |seconds| seconds as i64)
    }

    /// The token counts, from whichever field holds them.
    pub(super) fn usage(&self) -> Option<Usage> {
        let groq_usage = || self.x_groq.as_ref().and_then(|groq| groq.usage.as_ref());
        let choices = || self.choices.iter().flatten();
        let choice_usage = || choices().find_map(|choice| choice.usage.as_deref());
        let usage = self.usage.as_ref().or_else(groq_usage);
        usage.or_else(choice_usage).map(CompletionUsage::to_usage)
    }

    /// Whether a content filter has blocked the prompt.
    pub(super) fn is_prompt_blocked(&self) -> bool {
        let Some(results) = self.prompt_filter_results else {
            return false;
        };
        let results = decode_value(results.get().as_bytes());
        let of_prompts = results.as_array().into_iter().flatten();
        let filters = of_prompts.filter_map(|prompt| prompt["content_filter_results"].as_object());
        filters
            .flat_map(serde_json::Map::values)
            .any(|filter| filter["filtered"] == true)
    }

    /// An error inside of a response with a successful status.
    pub(super) fn api_error(&self) -> Option<ApiError> {
        let groq_error = self.x_groq.as_ref().and_then(|groq| groq.error);
        self.error.or(groq_error).map(decode_nested_error)
    }
}

impl<'a> CompletionChoice<'a> {
    /// Takes the log probabilities.
    pub(super) fn logprobs(&mut self) -> impl Iterator<Item = Logprob<'a>> + use<'a> {
        decode_logprobs(self.logprobs.take())
    }

    /// Decodes `finish_reason`; `None` where the choice has not ended.
    pub(super) fn finish(
        &self,
        summary: ChoiceSummary,
    ) -> Result<Option<Finish<'static>>, ApiError> {
        match self.error {
            Some(error) => Err(decode_nested_error(error)),
            None => decode_finish_reason(self.finish_reason.as_deref(), summary),
        }
    }
}

fn decode_nested_error(error: RawJson<'_>) -> ApiError {
    decode_error(200, format!(r#"{{"error":{}}}"#, error.get()).as_bytes())
}

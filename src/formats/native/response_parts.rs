//! A reply, or one piece of it, as an upstream writes it.

use super::sources::{CitationMetadata, GroundingMetadata};
use super::usage::RawUsage;
use crate::formats::few::Few;
use crate::json::{Present, RawJson, from_json};
use crate::model::{Finish, Issuer, Json, Logprob, Media, PROMPT_BLOCKED, Signature, Source, Text};

/// How streams of another format end: proxies in front of an upstream may add it after the finish.
pub(super) const END_ELSEWHERE: &str = "[DONE]";

from_json! {
    /// What is rare stands in a box, so that a piece is small.
    pub(super) struct Piece<'a> {
        "candidates" => pub(super) candidates: Option<Few<Candidate<'a>>>,
        "promptFeedback" => prompt_feedback: Option<PromptFeedback<'a>>,
        "usageMetadata" => pub(super) usage_metadata: Option<RawUsage<'a>>,
        "modelVersion" => pub(super) model_version: Option<Text<'a>>,
        "responseId" => pub(super) response_id: Option<Text<'a>>,
        "createTime" => create_time: Option<Text<'a>>,
        "error" => pub(super) error: Option<Present>,
    }
}

from_json! {
    struct PromptFeedback<'a> {
        "blockReason" => block_reason: Option<Text<'a>>,
    }
}

from_json! {
    pub(super) struct Candidate<'a> {
        /// The first one is often not numbered.
        "index" => index: Option<u32>,
        "content" => pub(super) content: Option<ContentIn<'a>>,
        "finishReason" => pub(super) finish_reason: Option<Text<'a>>,
        "finishMessage" => pub(super) finish_message: Option<Text<'a>>,
        "groundingMetadata" => pub(super) grounding_metadata: Option<Box<GroundingMetadata<'a>>>,
        "citationMetadata" => pub(super) citation_metadata: Option<Box<CitationMetadata<'a>>>,
        "logprobsResult" => pub(super) logprobs_result: Option<Box<LogprobsIn<'a>>>,
        "safetyRatings" => pub(super) safety_ratings: Option<Present>,
        "urlContextMetadata" => pub(super) url_context_metadata: Option<Present>,
    }
}

from_json! {
    pub(super) struct ContentIn<'a> {
        "parts" => pub(super) parts: Option<Few<PartIn<'a>>>,
    }
}

from_json! {
    pub(super) struct PartIn<'a> {
        "text" => text: Option<Text<'a>>,
        "thought" => thought: Option<bool>,
        "thoughtSignature" => thought_signature: Option<Text<'a>>,
        "inlineData" => inline_data: Option<Box<InlineIn<'a>>>,
        "fileData" => file_data: Option<Box<FileIn<'a>>>,
        "functionCall" => function_call: Option<Box<CallIn<'a>>>,
        "codeExecutionResult" => code_execution_result: Option<ExecutionIn<'a>>,
    }
}

from_json! {
    struct InlineIn<'a> {
        "mimeType" => mime_type: Option<Text<'a>>,
        "data" => data: Option<Text<'a>>,
    }
}

from_json! {
    struct FileIn<'a> {
        "mimeType" => mime_type: Option<Text<'a>>,
        "fileUri" => file_uri: Option<Text<'a>>,
    }
}

from_json! {
    pub(super) struct CallIn<'a> {
        "id" => pub(super) id: Option<Text<'a>>,
        "name" => pub(super) name: Option<Text<'a>>,
        "args" => pub(super) args: Option<Json<'a>>,
        "partialArgs" => pub(super) partial_args: Option<Vec<PartialArg<'a>>>,
        "willContinue" => pub(super) will_continue: Option<bool>,
    }
}

from_json! {
    /// One argument of a call, or a piece of it.
    pub(super) struct PartialArg<'a> {
        "jsonPath" => pub(super) json_path: Option<Text<'a>>,
        "stringValue" => pub(super) string_value: Option<Text<'a>>,
        "numberValue" => pub(super) number_value: Option<RawJson<'a>>,
        "boolValue" => pub(super) bool_value: Option<bool>,
    }
}

from_json! {
    struct ExecutionIn<'a> {
        "output" => output: Option<Text<'a>>,
    }
}

from_json! {
    pub(super) struct LogprobsIn<'a> {
        "topCandidates" => top_candidates: Option<Vec<TopIn<'a>>>,
        "chosenCandidates" => chosen_candidates: Option<Vec<ChosenIn<'a>>>,
    }
}

from_json! {
    struct TopIn<'a> {
        "candidates" => candidates: Option<Vec<ChosenIn<'a>>>,
    }
}

from_json! {
    struct ChosenIn<'a> {
        "token" => token: Option<Text<'a>>,
        "logProbability" => log_probability: Option<f64>,
    }
}

/// What a part says.
pub(super) enum Said<'a> {
    Words(Text<'a>),
    /// Printed by code that the upstream itself ran.
    Printed(Text<'a>),
    Reasoning(Text<'a>),
    Call(CallIn<'a>),
    Media(Media<'a>),
    /// Nothing that another format could say.
    Foreign,
}

impl<'a> Piece<'a> {
    /// Unix seconds; 0 when it does not say.
    pub(super) fn created(&self) -> i64 {
        let time = self.create_time.as_ref();
        let time = time.and_then(|time| time.parse::<jiff::Timestamp>().ok());
        time.map_or(0, |time| time.as_second())
    }

    /// Why the prompt itself was refused.
    pub(super) fn blocked(&self) -> Option<String> {
        let reason = self.prompt_feedback.as_ref()?.block_reason.as_ref()?;
        Some(format!("{PROMPT_BLOCKED}{}", reason))
    }
}

impl Candidate<'_> {
    pub(super) fn number(&self) -> u32 {
        self.index.unwrap_or_default()
    }
}

impl<'a> PartIn<'a> {
    /// Words of the answer itself.
    pub(super) fn is_words(&self) -> bool {
        let says = self.text.as_ref().is_some_and(|text| !text.is_empty());
        let prints = self.text.is_none() && self.code_execution_result.is_some();
        self.function_call.is_none() && self.thought != Some(true) && (says || prints)
    }

    pub(super) fn read(self) -> (Said<'a>, Option<Signature<'a>>) {
        let signature = self.thought_signature;
        let signature = signature
            .filter(|data| !data.is_empty())
            .map(|data| Signature {
                issuer: Issuer::Native,
                data,
            });
        let media = |mime: Option<Text<'a>>, source| {
            Said::Media(Media {
                mime: mime.unwrap_or_default(),
                source,
                name: None,
                detail: None,
            })
        };
        let thought = self.thought == Some(true);
        let said = if let Some(call) = self.function_call {
            Said::Call(*call)
        } else if let Some(text) = self.text {
            match thought {
                true => Said::Reasoning(text),
                false => Said::Words(text),
            }
        } else if let Some(inline) = self.inline_data.filter(|_| !thought) {
            media(
                inline.mime_type,
                Source::Base64(inline.data.unwrap_or_default()),
            )
        } else if let Some(file) = self.file_data.filter(|_| !thought) {
            media(
                file.mime_type,
                Source::Url(file.file_uri.unwrap_or_default()),
            )
        } else if let Some(output) = self.code_execution_result.and_then(|run| run.output) {
            Said::Printed(output)
        } else {
            Said::Foreign
        };
        (said, signature)
    }
}

impl<'a> LogprobsIn<'a> {
    pub(super) fn read(self) -> impl Iterator<Item = Logprob<'a>> {
        let mut tops = self.top_candidates.into_iter().flatten();
        let chosen = self.chosen_candidates.into_iter().flatten();
        let pair = |entry: ChosenIn<'a>| {
            let logprob = entry.log_probability.unwrap_or_default();
            (entry.token.unwrap_or_default(), logprob)
        };
        chosen.map(move |entry| {
            let top = tops.next().and_then(|top| top.candidates);
            let (token, logprob) = pair(entry);
            Logprob {
                token,
                logprob,
                top: top.into_iter().flatten().map(pair).collect(),
            }
        })
    }
}

/// Reasons that say the same in every format.
pub(super) fn is_exact(reason: &str) -> bool {
    matches!(reason, "STOP" | "MAX_TOKENS" | "SAFETY")
}

/// A turn that ends in calls stops like any other here, so the calls themselves decide.
pub(super) fn read_finish<'a>(reason: &str, words: Option<Text<'a>>, calls: bool) -> Finish<'a> {
    match reason {
        "MAX_TOKENS" | "CONTINUATION" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => Finish::Filtered(words),
        _ if calls => Finish::Tools,
        "STOP" => Finish::Stop,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE" => Finish::MalformedCall,
        _ => Finish::Other,
    }
}

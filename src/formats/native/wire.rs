//! A reply, or one piece of it, as an upstream writes it.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::sources::{CitationMetadata, GroundingMetadata};
use super::usage::RawUsage;
use crate::formats::few::Few;
use crate::model::{Finish, Issuer, Json, Logprob, Media, PROMPT_BLOCKED, Seal, Source, Text};

/// Text that borrows from the body; a bare `Cow` would not, inside of an `Option`.
#[derive(Deserialize)]
pub(super) struct Word<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// What is rare stands in a box: a piece is small and is moved often while it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Few<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    pub(super) usage_metadata: Option<RawUsage>,
    #[serde(borrow)]
    pub(super) model_version: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) response_id: Option<Word<'a>>,
    #[serde(borrow)]
    create_time: Option<Word<'a>>,
    pub(super) error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Word<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    /// The first one is often not numbered.
    index: Option<u32>,
    #[serde(borrow)]
    pub(super) content: Option<ContentIn<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) finish_message: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) grounding_metadata: Option<Box<GroundingMetadata<'a>>>,
    #[serde(borrow)]
    pub(super) citation_metadata: Option<Box<CitationMetadata<'a>>>,
    #[serde(borrow)]
    pub(super) logprobs_result: Option<Box<LogprobsIn<'a>>>,
    pub(super) safety_ratings: Option<IgnoredAny>,
    pub(super) url_context_metadata: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct ContentIn<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Few<PartIn<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartIn<'a> {
    #[serde(borrow)]
    text: Option<Word<'a>>,
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<Word<'a>>,
    #[serde(borrow)]
    inline_data: Option<Box<InlineIn<'a>>>,
    #[serde(borrow)]
    file_data: Option<Box<FileIn<'a>>>,
    #[serde(borrow)]
    function_call: Option<Box<CallIn<'a>>>,
    #[serde(borrow)]
    code_execution_result: Option<ExecutionIn<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InlineIn<'a> {
    #[serde(borrow)]
    mime_type: Option<Word<'a>>,
    #[serde(borrow)]
    data: Option<Word<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileIn<'a> {
    #[serde(borrow)]
    mime_type: Option<Word<'a>>,
    #[serde(borrow)]
    file_uri: Option<Word<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallIn<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Word<'a>>,
    #[serde(borrow, default, deserialize_with = "read_tree")]
    pub(super) args: Option<Json<'a>>,
    #[serde(borrow)]
    pub(super) partial_args: Option<Vec<PartialArg<'a>>>,
    pub(super) will_continue: Option<bool>,
}

/// A tree is read with the lifetime of its body and no other.
fn read_tree<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Json<'a>>, D::Error> {
    Option::<Json<'de>>::deserialize(deserializer)
}

/// One argument of a call, or a piece of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialArg<'a> {
    #[serde(borrow)]
    pub(super) json_path: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) string_value: Option<Word<'a>>,
    pub(super) number_value: Option<serde_json::Number>,
    pub(super) bool_value: Option<bool>,
}

#[derive(Deserialize)]
struct ExecutionIn<'a> {
    #[serde(borrow)]
    output: Option<Word<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogprobsIn<'a> {
    #[serde(borrow)]
    top_candidates: Option<Vec<TopIn<'a>>>,
    #[serde(borrow)]
    chosen_candidates: Option<Vec<ChosenIn<'a>>>,
}

#[derive(Deserialize)]
struct TopIn<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<ChosenIn<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChosenIn<'a> {
    #[serde(borrow)]
    token: Option<Word<'a>>,
    log_probability: Option<f64>,
}

/// What a part says.
pub(super) enum Said<'a> {
    Words(Text<'a>),
    /// Printed by code that the upstream itself ran.
    Printed(Text<'a>),
    Thought(Text<'a>),
    Call(CallIn<'a>),
    Media(Media<'a>),
    /// Nothing that another format could say.
    Foreign,
}

pub(super) fn text_of(word: Option<Word<'_>>) -> Text<'_> {
    word.map(|word| word.0).unwrap_or_default()
}

impl<'a> Piece<'a> {
    /// Unix seconds; 0 when it does not say.
    pub(super) fn created(&self) -> i64 {
        let time = self.create_time.as_ref();
        let time = time.and_then(|time| time.0.parse::<jiff::Timestamp>().ok());
        time.map_or(0, |time| time.as_second())
    }

    /// Why the prompt itself was refused.
    pub(super) fn blocked(&self) -> Option<String> {
        let reason = self.prompt_feedback.as_ref()?.block_reason.as_ref()?;
        Some(format!("{PROMPT_BLOCKED}{}", reason.0))
    }
}

impl Candidate<'_> {
    pub(super) fn number(&self) -> u32 {
        self.index.unwrap_or_default()
    }
}

impl<'a> PartIn<'a> {
    pub(super) fn read(self) -> (Said<'a>, Option<Seal<'a>>) {
        let signature = self.thought_signature.map(|word| word.0);
        let seal = signature.filter(|data| !data.is_empty()).map(|data| Seal {
            issuer: Issuer::Native,
            data,
        });
        let media = |mime, source| {
            Said::Media(Media {
                mime: text_of(mime),
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
                true => Said::Thought(text.0),
                false => Said::Words(text.0),
            }
        } else if let Some(inline) = self.inline_data.filter(|_| !thought) {
            media(inline.mime_type, Source::Base64(text_of(inline.data)))
        } else if let Some(file) = self.file_data.filter(|_| !thought) {
            media(file.mime_type, Source::Url(text_of(file.file_uri)))
        } else if let Some(output) = self.code_execution_result.and_then(|run| run.output) {
            Said::Printed(output.0)
        } else {
            Said::Foreign
        };
        (said, seal)
    }
}

impl<'a> LogprobsIn<'a> {
    pub(super) fn read(self) -> impl Iterator<Item = Logprob<'a>> {
        let mut tops = self.top_candidates.into_iter().flatten();
        let chosen = self.chosen_candidates.into_iter().flatten();
        let pair = |entry: ChosenIn<'a>| {
            let logprob = entry.log_probability.unwrap_or_default();
            (text_of(entry.token), logprob)
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

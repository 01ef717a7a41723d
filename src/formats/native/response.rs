//! The JSON response, and the top level that it shares with the chunks of a stream.

use jiff::Timestamp;
use serde::Serialize;
use smallvec::SmallVec;

use super::Native;
use super::candidate::{UpstreamCandidate, encode_candidate};
use super::error;
use super::finish_reason::report_encoded_reason;
use super::known_citations::CitationBudget;
use super::response_parts::part_location;
use super::usage::{UpstreamUsage, UsageMetadata, whole_report};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{
    ErrorCodec, ReportedUsage, ResponseCodec, ResponseOptions, decode_response_body,
};
use crate::json::{Present, from_json};
use crate::model::{
    ApiError, Choice, FieldLocation, Finish, Losses, PROMPT_BLOCKED, PartKind, Response, Text,
    Usage,
};

from_json! {
    /// A response of an upstream, or one chunk of its stream.
    pub(super) struct NativeUpstreamResponse<'a> {
        "candidates" => pub(super) candidates: Option<SmallVec<[UpstreamCandidate<'a>; 1]>>,
        "promptFeedback" => prompt_feedback: Option<UpstreamPromptFeedback<'a>>,
        "usageMetadata" => pub(super) usage_metadata: Option<UpstreamUsage<'a>>,
        "modelVersion" => pub(super) model_version: Option<Text<'a>>,
        "responseId" => pub(super) response_id: Option<Text<'a>>,
        "createTime" => create_time: Option<Text<'a>>,
        "error" => pub(super) error: Option<Present>,
    }
}

from_json! {
    struct UpstreamPromptFeedback<'a> {
        "blockReason" => block_reason: Option<Text<'a>>,
    }
}

impl<'a> NativeUpstreamResponse<'a> {
    /// The time of creation in Unix seconds; 0 if the response does not have it.
    pub(super) fn created(&self) -> i64 {
        let time = self.create_time.as_ref();
        let time = time.and_then(|time| time.parse::<Timestamp>().ok());
        time.map_or(0, |time| time.as_second())
    }

    /// The message for a prompt that the upstream blocked.
    pub(super) fn block_message(&self) -> Option<String> {
        let reason = self.prompt_feedback.as_ref()?.block_reason.as_ref()?;
        Some(format!("{PROMPT_BLOCKED}{}", reason))
    }
}

impl ResponseCodec for Native {
    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        if error::is_error_list(body) {
            return Err(Native.decode_error(200, body));
        }
        let mut response: NativeUpstreamResponse<'a> = decode_response_body(body)?;
        if response.error.is_some() {
            return Err(Native.decode_error(200, body));
        }
        let candidates = response.candidates.take().unwrap_or_default();
        let mut candidates: Vec<_> = candidates.into_iter().collect();
        candidates.sort_by_key(UpstreamCandidate::index);
        let mut budget = CitationBudget::default();
        let mut choices: Vec<_> = candidates
            .into_iter()
            .map(|candidate| candidate.decode(&mut budget, losses))
            .collect();
        budget.report_losses(losses);
        if choices.is_empty() {
            let message = response.block_message().ok_or_else(|| {
                ApiError::bad_gateway(
                    "the upstream's response has neither a candidate nor a block reason",
                )
            })?;
            choices.push(Choice {
                parts: Vec::new(),
                citations: Vec::new(),
                logprobs: Vec::new(),
                finish: Finish::Filtered(Some(message.into())),
            });
        }
        Ok(Response {
            created: response.created(),
            id: response.response_id.unwrap_or_default(),
            model: response.model_version.unwrap_or_default(),
            choices,
            usage: response.usage_metadata.map(|usage| usage.decode()),
        })
    }

    fn usage_report(&self, usage: Usage) -> ReportedUsage {
        whole_report(usage)
    }

    /// Encodes a JSON response for a client. Model, id and time come from the request where the upstream
    /// left them out.
    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8> {
        report_losses(response, losses);
        let block_reason = response.blocked_prompt();
        let created = if response.created == 0 {
            options.created_at
        } else {
            response.created
        };
        let candidates = block_reason.is_none().then(|| {
            let choices = (0u32..).zip(&response.choices);
            let hides_reasoning = options.translation_state.hides_reasoning;
            let candidates = choices
                .map(|(index, choice)| encode_candidate(index, choice, hides_reasoning, losses));
            candidates.collect::<Vec<_>>()
        });
        let encoded = GenerateContentResponse {
            response: ClientResponse {
                candidates,
                prompt_feedback: block_reason.map(|block_reason| PromptFeedback { block_reason }),
                usage_metadata: response.usage.map(UsageMetadata::from),
            },
            identity: ResponseIdentity::new(
                or_default(&response.model, &options.model),
                created,
                or_default(&response.id, &options.request_id),
            ),
        };
        to_json_bytes(&encoded, response.size())
    }
}

/// The fields of a response to a client that differ between the chunks of a stream.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientResponse<'a, C> {
    pub(super) candidates: Option<C>,
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    pub(super) usage_metadata: Option<UsageMetadata>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    pub(super) block_reason: &'a str,
}

/// The fields that are the same in every chunk of a stream.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseIdentity<'a> {
    model_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_time: Option<String>,
    response_id: &'a str,
}

impl<'a> ResponseIdentity<'a> {
    pub(super) fn new(model_version: &'a str, created: i64, response_id: &'a str) -> Self {
        let create_time = Timestamp::from_second(created).ok();
        ResponseIdentity {
            model_version,
            create_time: create_time.map(|time| time.to_string()),
            response_id,
        }
    }
}

#[derive(Serialize)]
struct GenerateContentResponse<'a, C> {
    #[serde(flatten)]
    response: ClientResponse<'a, C>,
    #[serde(flatten)]
    identity: ResponseIdentity<'a>,
}

fn or_default<'a>(value: &'a str, default: &'a str) -> &'a str {
    if value.is_empty() { default } else { value }
}

/// Reports what a response loses on its way to a client of this format, besides its calls.
fn report_losses(response: &Response<'_>, losses: &mut Losses) {
    if response.usage.is_some_and(|usage| usage.cache_written > 0) {
        losses.dropped(FieldLocation::Path(
            "usageMetadata: tokens written to the cache".into(),
        ));
    }
    if response.blocked_prompt().is_some() {
        return;
    }
    for (index, choice) in response.choices.iter().enumerate() {
        report_encoded_reason(index, &choice.finish, losses);
        for (number, part) in choice.parts.iter().enumerate() {
            // A refusal becomes text like any other.
            if matches!(part.kind, PartKind::Refusal(_)) {
                losses.approximated(part_location(index, number));
            }
        }
    }
}

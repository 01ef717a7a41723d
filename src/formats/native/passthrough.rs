//! Passthrough: the output limit of a request, and the usage and the end of a response that pass
//! unchanged.

use super::error;
use super::stream::DONE;
use super::usage::UpstreamUsage;
use crate::formats::few::Few;
use crate::formats::{
    Glance, Heard, OutputLimit, Peek, Watch, no_answer, read_event, read_reply, read_request,
};
use crate::json::{Present, RawJson, decode_json, from_json};
use crate::model::ApiError;

/// A peek at a request. The model and whether to stream stand in the path, not in the body.
pub(super) const PEEK: Peek<'static> = Peek {
    model: None,
    stream: false,
    ask_usage: None,
    most: None,
    thread: None,
    aside: None,
};

from_json! {
    struct LimitedRequest<'a> {
        "generationConfig" | "generation_config" => config: Option<LimitedConfig<'a>>,
    }
}

from_json! {
    struct LimitedConfig<'a> {
        "maxOutputTokens" | "max_output_tokens" => output: Option<RawJson<'a>>,
        "candidateCount" | "candidate_count" => choices: Option<RawJson<'a>>,
    }
}

/// Finds the output limit of a request.
pub(super) fn output_limit(body: &[u8]) -> OutputLimit {
    let limited: LimitedRequest<'_> = read_request(body).unwrap_or_default();
    let limits = limited.config.unwrap_or_default();
    OutputLimit::of(limits.output, limits.choices)
}

from_json! {
    struct ObservedResponse<'a> {
        "candidates" => candidates: Option<Few<ObservedCandidate<'a>>>,
        "promptFeedback" => prompt_feedback: Option<ObservedPromptFeedback>,
        "usageMetadata" => usage_metadata: Option<UpstreamUsage<'a>>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct ObservedCandidate<'a> {
        "index" => index: Option<u32>,
        "content" => content: Option<RawJson<'a>>,
        "finishReason" => finish_reason: Option<Present>,
    }
}

from_json! {
    struct ObservedContent<'a> {
        "parts" => parts: Option<Few<ObservedPart<'a>>>,
    }
}

from_json! {
    struct ObservedPart<'a> {
        "text" => text: Option<RawJson<'a>>,
        "thought" => thought: Option<RawJson<'a>>,
        "functionCall" => function_call: Option<RawJson<'a>>,
    }
}

impl ObservedCandidate<'_> {
    /// Counts the bytes of the content, for responses without usage.
    fn count(&self, heard: &mut Heard) {
        let content = self.content.map(RawJson::get);
        // Content that cannot be decoded counts nothing, but passes.
        let content = content.and_then(|content| decode_json(content).ok());
        let parts = content.and_then(|content: ObservedContent<'_>| content.parts);
        for part in parts.iter().flat_map(Few::iter) {
            match part.thought.map(RawJson::get) {
                Some("true") => heard.think(part.text),
                _ => heard.say(part.text),
            }
            heard.said += part.function_call.map_or(0, |call| call.get().len() as u64);
        }
    }
}

from_json! {
    struct ObservedPromptFeedback {
        "blockReason" => block_reason: Option<Present>,
    }
}

/// Observes a JSON response.
pub(super) fn observe_response(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
    if error::is_error_list(body) {
        return Err(error::decode_error(200, body));
    }
    let response: ObservedResponse<'_> = read_reply(body)?;
    if response.error.is_some() {
        return Err(error::decode_error(200, body));
    }
    if response.candidates.is_none() && response.prompt_feedback.is_none() {
        return Err(no_answer());
    }
    record(&response, watch);
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance::default())
}

/// Observes one event of a stream.
pub(super) fn observe_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    if data == DONE {
        return Ok(Glance {
            is_foreign: true,
            ..Glance::default()
        });
    }
    let response: ObservedResponse<'_> = read_event(data)?;
    if response.error.is_some() {
        watch.api_error = Some(error::decode_error(200, data.as_bytes()));
        watch.ended = true;
    }
    record(&response, watch);
    Ok(Glance::default())
}

/// Records the usage, the content and the end that a response or a chunk holds.
fn record(response: &ObservedResponse<'_>, watch: &mut Watch) {
    match &response.usage_metadata {
        Some(usage) => watch.meter(usage.decode()),
        None => {
            let candidates = response.candidates.iter().flat_map(Few::iter);
            candidates.for_each(|candidate| candidate.count(&mut watch.unmetered));
        }
    }
    for candidate in response.candidates.iter().flat_map(Few::iter) {
        watch.begun |= candidate.content.is_some();
        watch.choice(
            candidate.index.unwrap_or(0),
            candidate.finish_reason.is_some(),
        );
    }
    watch.ended |= response
        .prompt_feedback
        .as_ref()
        .is_some_and(|feedback| feedback.block_reason.is_some());
    watch.begun |= watch.ended && watch.api_error.is_none();
}

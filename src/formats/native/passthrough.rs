//! What pass-through reads: usage and the end of a reply. Model and stream stand in the path.

use super::error;
use super::response_parts::END_ELSEWHERE;
use super::usage::RawUsage;
use crate::formats::few::Few;
use crate::formats::{
    Glance, Heard, OutputLimit, Peek, Watch, no_answer, read_event, read_reply, read_request,
};
use crate::json::{Present, RawJson, decode_json, from_json};
use crate::model::ApiError;

/// All that routing must know stands in the path.
pub(super) const PEEK: Peek<'static> = Peek {
    model: None,
    stream: false,
    ask_usage: None,
    most: None,
    thread: None,
    aside: None,
};

from_json! {
    struct Limited<'a> {
        "generationConfig" | "generation_config" => config: Option<Limits<'a>>,
    }
}

from_json! {
    struct Limits<'a> {
        "maxOutputTokens" | "max_output_tokens" => output: Option<RawJson<'a>>,
        "candidateCount" | "candidate_count" => choices: Option<RawJson<'a>>,
    }
}

pub(super) fn most(body: &[u8]) -> OutputLimit {
    let limited: Limited<'_> = read_request(body).unwrap_or_default();
    let limits = limited.config.unwrap_or_default();
    OutputLimit::of(limits.output, limits.choices)
}

from_json! {
    struct Piece<'a> {
        "candidates" => candidates: Option<Few<Candidate<'a>>>,
        "promptFeedback" => prompt_feedback: Option<PromptFeedback>,
        "usageMetadata" => usage_metadata: Option<RawUsage<'a>>,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct Candidate<'a> {
        "index" => index: Option<u32>,
        "content" => content: Option<RawJson<'a>>,
        "finishReason" => finish_reason: Option<Present>,
    }
}

from_json! {
    struct Content<'a> {
        "parts" => parts: Option<Few<Part<'a>>>,
    }
}

from_json! {
    struct Part<'a> {
        "text" => text: Option<RawJson<'a>>,
        "thought" => thought: Option<RawJson<'a>>,
        "functionCall" => function_call: Option<RawJson<'a>>,
    }
}

impl Candidate<'_> {
    fn count(&self, heard: &mut Heard) {
        let content = self.content.map(RawJson::get);
        // Whatever else stands there is the client's to judge.
        let content = content.and_then(|content| decode_json(content).ok());
        let parts = content.and_then(|content: Content<'_>| content.parts);
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
    struct PromptFeedback {
        "blockReason" => block_reason: Option<Present>,
    }
}

pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
    if error::is_listed(body) {
        return Err(error::decode(200, body));
    }
    let piece: Piece<'_> = read_reply(body)?;
    if piece.error.is_some() {
        return Err(error::decode(200, body));
    }
    if piece.candidates.is_none() && piece.prompt_feedback.is_none() {
        return Err(no_answer());
    }
    note(&piece, watch);
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance::default())
}

pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    if data == END_ELSEWHERE {
        return Ok(Glance {
            is_foreign: true,
            ..Glance::default()
        });
    }
    let piece: Piece<'_> = read_event(data)?;
    if piece.error.is_some() {
        watch.api_error = Some(error::decode(200, data.as_bytes()));
        watch.ended = true;
    }
    note(&piece, watch);
    Ok(Glance::default())
}

fn note(piece: &Piece<'_>, watch: &mut Watch) {
    match &piece.usage_metadata {
        Some(usage) => watch.meter(usage.read()),
        None => {
            let candidates = piece.candidates.iter().flat_map(Few::iter);
            candidates.for_each(|candidate| candidate.count(&mut watch.unmetered));
        }
    }
    for candidate in piece.candidates.iter().flat_map(Few::iter) {
        watch.begun |= candidate.content.is_some();
        watch.choice(
            candidate.index.unwrap_or(0),
            candidate.finish_reason.is_some(),
        );
    }
    watch.ended |= piece
        .prompt_feedback
        .as_ref()
        .is_some_and(|feedback| feedback.block_reason.is_some());
    watch.begun |= watch.ended && watch.api_error.is_none();
}

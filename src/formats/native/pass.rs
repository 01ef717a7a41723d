//! What pass-through reads: usage and the end of a reply. Model and stream stand in the path.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::formats::{Glance, Peek, Watch, no_answer, read_reply, read_request};
use crate::model::{Fault, Usage};

pub(super) fn peek(body: &[u8]) -> Result<Peek<'_>, Fault> {
    #[derive(Deserialize)]
    struct AnyObject {}
    let AnyObject {} = read_request(body)?;
    Ok(Peek {
        model: None,
        stream: false,
        ask_usage: None,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<PromptFeedback>,
    usage_metadata: Option<RawUsage>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    index: Option<u32>,
    content: Option<IgnoredAny>,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<IgnoredAny>,
}

/// Zero and unknown are both left out, or null.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawUsage {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
}

impl RawUsage {
    pub(super) fn read(&self) -> Usage {
        let sum = |first: Option<u64>, second: Option<u64>| {
            first
                .unwrap_or_default()
                .saturating_add(second.unwrap_or_default())
        };
        Usage {
            input: sum(self.prompt_token_count, self.tool_use_prompt_token_count),
            cached: self.cached_content_token_count.unwrap_or_default(),
            cache_written: 0,
            output: sum(self.candidates_token_count, self.thoughts_token_count),
            thinking: self.thoughts_token_count.unwrap_or_default(),
        }
    }
}

pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, Fault> {
    let piece: Piece = read_reply(body)?;
    if piece.error.is_some() {
        return Err(super::error::decode(200, body));
    }
    if piece.candidates.is_none() && piece.prompt_feedback.is_none() {
        return Err(no_answer());
    }
    note(&piece, watch);
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance::default())
}

pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, Fault> {
    let piece: Piece = read_reply(data.as_bytes())?;
    if piece.error.is_some() {
        watch.fault = Some(super::error::decode(200, data.as_bytes()));
        watch.ended = true;
    }
    note(&piece, watch);
    Ok(Glance::default())
}

fn note(piece: &Piece, watch: &mut Watch) {
    if let Some(usage) = &piece.usage_metadata {
        watch.usage = Some(usage.read());
    }
    for candidate in piece.candidates.iter().flatten() {
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
    watch.begun |= watch.ended && watch.fault.is_none();
}

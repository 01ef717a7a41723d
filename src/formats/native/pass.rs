//! What pass-through reads: usage and the end of a reply. Model and stream stand in the path.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::usage::RawUsage;
use crate::formats::few::Few;
use crate::formats::{Glance, Peek, Watch, no_answer, read_event, read_reply};
use crate::model::Fault;

/// All that routing must know stands in the path.
pub(super) const PEEK: Peek<'static> = Peek {
    model: None,
    stream: false,
    ask_usage: None,
    thread: None,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    candidates: Option<Few<Candidate>>,
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
    let piece: Piece = read_event(data)?;
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
    watch.begun |= watch.ended && watch.fault.is_none();
}

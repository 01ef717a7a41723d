//! Drafts of turns, brought into the order that the format insists on.

use std::borrow::Cow;

use serde::Serialize;

use super::blocks_out::{Block, Content};
use crate::model::{FieldLocation, Losses};

#[derive(Serialize)]
pub(super) struct Message<'a> {
    role: Speaker,
    content: Option<Content<'a>>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Speaker {
    User,
    Assistant,
    System,
}

/// A turn in the making.
pub(super) struct Draft<'a> {
    pub(super) speaker: Speaker,
    pub(super) pieces: Vec<Piece<'a>>,
    pub(super) at: Option<u32>,
}

pub(super) struct Piece<'a> {
    pub(super) block: Block<'a>,
    /// Where the client wrote it.
    pub(super) place: FieldLocation,
}

impl Piece<'_> {
    fn is_call(&self) -> bool {
        matches!(self.block, Block::ToolUse { .. })
    }

    fn is_result(&self) -> bool {
        matches!(self.block, Block::ToolResult { .. })
    }
}

/// Stands where the format insists on a result.
const NO_RESULT: &str = "(no result)";

impl<'a> Draft<'a> {
    pub(super) fn of(speaker: Speaker, block: Block<'a>, at: Option<u32>) -> Draft<'a> {
        let place = FieldLocation::Turn { turn: at };
        Draft {
            speaker,
            pieces: vec![Piece { block, place }],
            at,
        }
    }

    pub(super) fn finish(self) -> Message<'a> {
        let content = match self.pieces.as_slice() {
            [
                Piece {
                    block: Block::Text { text },
                    ..
                },
            ] => Some(Content::Text(text)),
            _ => Content::of(self.pieces.into_iter().map(|piece| piece.block).collect()),
        };
        Message {
            role: self.speaker,
            content,
        }
    }
}

/// The system prompt, and the turns with those system turns that may stay where they are: after
/// the user and before the model.
pub(super) fn settle_system<'a>(
    drafts: Vec<Draft<'a>>,
    may_stay: bool,
    losses: &mut Losses,
) -> (Vec<Block<'a>>, Vec<Draft<'a>>) {
    if drafts.iter().all(|draft| draft.speaker != Speaker::System) {
        return (Vec::new(), drafts);
    }
    let mut system: Vec<Block<'a>> = Vec::new();
    let mut kept: Vec<Draft<'a>> = Vec::with_capacity(drafts.len());
    let mut run: Vec<Draft<'a>> = Vec::new();
    let mut drafts = drafts.into_iter().peekable();
    while let Some(draft) = drafts.next() {
        if draft.speaker != Speaker::System {
            kept.push(draft);
            continue;
        }
        run.push(draft);
        let next = drafts.peek().map(|draft| draft.speaker);
        if next == Some(Speaker::System) {
            continue;
        }
        let after_user = kept.last().map(|draft| draft.speaker) == Some(Speaker::User);
        if may_stay && after_user && next != Some(Speaker::User) {
            kept.append(&mut run);
            continue;
        }
        for draft in run.drain(..) {
            if !kept.is_empty() {
                losses.approximated(FieldLocation::Turn { turn: draft.at });
            }
            system.extend(draft.pieces.into_iter().map(|piece| piece.block));
        }
    }
    (system, kept)
}

/// Neighbours of one speaker become one.
pub(super) fn merge(drafts: &mut Vec<Draft<'_>>) {
    drafts.dedup_by(|draft, before| {
        let is_same = draft.speaker == before.speaker;
        if is_same {
            before.pieces.append(&mut draft.pieces);
        }
        is_same
    });
}

/// Right after the turn that calls, each call has exactly one result, before anything else.
pub(super) fn match_results<'a>(drafts: Vec<Draft<'a>>, losses: &mut Losses) -> Vec<Draft<'a>> {
    let mut pieces = drafts.iter().flat_map(|draft| &draft.pieces);
    if !pieces.any(|piece| piece.is_call() || piece.is_result()) {
        return drafts;
    }
    let mut matched: Vec<Draft<'a>> = Vec::with_capacity(drafts.len());
    for mut draft in drafts {
        if draft.speaker == Speaker::User {
            answer(&mut draft, calls_of(matched.last()), losses);
        } else {
            matched.extend(missing_turn(matched.last(), losses));
        }
        if !draft.pieces.is_empty() {
            matched.push(draft);
        }
    }
    matched.extend(missing_turn(matched.last(), losses));
    matched
}

/// The turn that ought to answer the calls of this one.
fn missing_turn<'a>(calling: Option<&Draft<'_>>, losses: &mut Losses) -> Option<Draft<'a>> {
    let open = calls_of(calling);
    let mut draft = Draft {
        speaker: Speaker::User,
        pieces: Vec::new(),
        at: calling?.at,
    };
    answer(&mut draft, open, losses);
    (!draft.pieces.is_empty()).then_some(draft)
}

/// The ids of a turn's calls, and where they stand.
fn calls_of(draft: Option<&Draft<'_>>) -> Vec<(String, FieldLocation)> {
    let pieces = draft.map_or(&[][..], |draft| &draft.pieces);
    let calls = pieces.iter().filter_map(|piece| match &piece.block {
        Block::ToolUse { id, .. } => Some((id.to_string(), piece.place.clone())),
        _ => None,
    });
    calls.collect()
}

fn answer(draft: &mut Draft<'_>, mut open: Vec<(String, FieldLocation)>, losses: &mut Losses) {
    if open.is_empty() && !draft.pieces.iter().any(Piece::is_result) {
        return;
    }
    let (mut results, mut rest) = (Vec::new(), Vec::new());
    for piece in draft.pieces.drain(..) {
        let Block::ToolResult { tool_use_id, .. } = &piece.block else {
            rest.push(piece);
            continue;
        };
        match open.iter().position(|(id, _)| id == tool_use_id) {
            Some(at) => {
                open.remove(at);
                results.push(piece);
            }
            None => losses.dropped(piece.place),
        }
    }
    for (id, place) in open {
        losses.approximated(place.clone());
        let block = Block::ToolResult {
            tool_use_id: Cow::Owned(id),
            content: Some(Content::Text(NO_RESULT)),
            is_error: true,
        };
        results.push(Piece { block, place });
    }
    results.append(&mut rest);
    draft.pieces = results;
}

pub(super) fn ends_in_unproven_loop(drafts: &[Draft<'_>]) -> bool {
    let [.., model, user] = drafts else {
        return false;
    };
    let is_proof = |piece: &Piece<'_>| {
        matches!(
            piece.block,
            Block::Thinking { .. } | Block::RedactedThinking { .. }
        )
    };
    model.speaker == Speaker::Assistant
        && user.pieces.first().is_some_and(Piece::is_result)
        && !model.pieces.first().is_some_and(is_proof)
}

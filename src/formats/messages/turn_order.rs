//! The order of turns that the format requires: roles alternate, and results follow their calls.

use std::borrow::Cow;

use serde::Serialize;

use super::blocks::{ContentBlock, MessagesContent};
use crate::formats::keyed_queue::KeyedQueue;
use crate::model::{FieldLocation, Losses};

/// One of the `messages` of a request to an upstream.
#[derive(Serialize)]
pub(super) struct MessagesTurn<'a> {
    role: MessagesRole,
    content: Option<MessagesContent<'a>>,
}

/// The `role` of a turn.
#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessagesRole {
    User,
    Assistant,
    System,
}

/// A turn whose blocks may still be moved, dropped or completed.
pub(super) struct TurnDraft<'a> {
    pub(super) role: MessagesRole,
    pub(super) blocks: Vec<DraftBlock<'a>>,
    pub(super) at: Option<u32>,
}

/// A block of a draft, with its location in the client's request.
pub(super) struct DraftBlock<'a> {
    pub(super) block: ContentBlock<'a>,
    pub(super) location: FieldLocation,
}

impl DraftBlock<'_> {
    fn is_call(&self) -> bool {
        matches!(self.block, ContentBlock::ToolUse { .. })
    }

    fn is_result(&self) -> bool {
        matches!(self.block, ContentBlock::ToolResult { .. })
    }

    fn is_reasoning(&self) -> bool {
        matches!(
            self.block,
            ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. }
        )
    }
}

/// The content of a result that the format requires and the client did not send.
const NO_RESULT: &str = "(no result)";

impl<'a> TurnDraft<'a> {
    /// A turn of one block.
    pub(super) fn of(
        role: MessagesRole,
        block: ContentBlock<'a>,
        at: Option<u32>,
    ) -> TurnDraft<'a> {
        let location = FieldLocation::Turn { turn: at };
        TurnDraft {
            role,
            blocks: vec![DraftBlock { block, location }],
            at,
        }
    }

    pub(super) fn finish(mut self) -> MessagesTurn<'a> {
        let content = match self.blocks.as_mut_slice() {
            [
                DraftBlock {
                    block: ContentBlock::Text { text },
                    ..
                },
            ] => Some(MessagesContent::Text(std::mem::take(text))),
            _ => MessagesContent::of(self.blocks.into_iter().map(|draft| draft.block).collect()),
        };
        MessagesTurn {
            role: self.role,
            content,
        }
    }
}

/// Moves system turns into the system prompt. If `may_stay`, those that follow the user and precede
/// the model stay where they are.
pub(super) fn move_system_turns<'a>(
    drafts: Vec<TurnDraft<'a>>,
    may_stay: bool,
    losses: &mut Losses,
) -> (Vec<ContentBlock<'a>>, Vec<TurnDraft<'a>>) {
    if drafts
        .iter()
        .all(|draft| draft.role != MessagesRole::System)
    {
        return (Vec::new(), drafts);
    }
    let mut system: Vec<ContentBlock<'a>> = Vec::new();
    let mut turns: Vec<TurnDraft<'a>> = Vec::with_capacity(drafts.len());
    let mut system_run: Vec<TurnDraft<'a>> = Vec::new();
    let mut drafts = drafts.into_iter().peekable();
    while let Some(draft) = drafts.next() {
        if draft.role != MessagesRole::System {
            turns.push(draft);
            continue;
        }
        system_run.push(draft);
        let next = drafts.peek().map(|draft| draft.role);
        if next == Some(MessagesRole::System) {
            continue;
        }
        let after_user = turns.last().map(|draft| draft.role) == Some(MessagesRole::User);
        if may_stay && after_user && next != Some(MessagesRole::User) {
            turns.append(&mut system_run);
            continue;
        }
        for draft in system_run.drain(..) {
            if !turns.is_empty() {
                losses.approximated(FieldLocation::Turn { turn: draft.at });
            }
            system.extend(draft.blocks.into_iter().map(|draft| draft.block));
        }
    }
    (system, turns)
}

/// Merges neighbouring turns of the same role.
pub(super) fn merge_neighbours(drafts: &mut Vec<TurnDraft<'_>>) {
    drafts.dedup_by(|draft, before| {
        let is_same = draft.role == before.role;
        if is_same {
            before.blocks.append(&mut draft.blocks);
        }
        is_same
    });
}

/// Makes the turn after a turn with calls start with exactly one result for each call: drops results
/// without a call, and adds the results that are missing.
pub(super) fn match_results<'a>(
    drafts: Vec<TurnDraft<'a>>,
    losses: &mut Losses,
) -> Vec<TurnDraft<'a>> {
    let mut blocks = drafts.iter().flat_map(|draft| &draft.blocks);
    if !blocks.any(|block| block.is_call() || block.is_result()) {
        return drafts;
    }
    let mut matched: Vec<TurnDraft<'a>> = Vec::with_capacity(drafts.len());
    for mut draft in drafts {
        if draft.role == MessagesRole::User {
            match_turn(&mut draft, calls_of(matched.last()), losses);
        } else {
            matched.extend(missing_turn(matched.last(), losses));
        }
        if !draft.blocks.is_empty() {
            matched.push(draft);
        }
    }
    matched.extend(missing_turn(matched.last(), losses));
    matched
}

/// The turn of results that must follow this turn; `None` if it has no calls.
fn missing_turn<'a>(calling: Option<&TurnDraft<'_>>, losses: &mut Losses) -> Option<TurnDraft<'a>> {
    let calls = calls_of(calling);
    let mut draft = TurnDraft {
        role: MessagesRole::User,
        blocks: Vec::new(),
        at: calling?.at,
    };
    match_turn(&mut draft, calls, losses);
    (!draft.blocks.is_empty()).then_some(draft)
}

/// The ids and locations of a turn's calls.
fn calls_of(draft: Option<&TurnDraft<'_>>) -> Vec<(String, FieldLocation)> {
    let blocks = draft.map_or(&[][..], |draft| &draft.blocks);
    let calls = blocks.iter().filter_map(|draft| match &draft.block {
        ContentBlock::ToolUse { id, .. } => Some((id.to_string(), draft.location.clone())),
        _ => None,
    });
    calls.collect()
}

/// Brings the results of a turn into line with the calls of the turn before it.
fn match_turn(draft: &mut TurnDraft<'_>, calls: Vec<(String, FieldLocation)>, losses: &mut Losses) {
    if calls.is_empty() && !draft.blocks.iter().any(DraftBlock::is_result) {
        return;
    }
    let mut unanswered = KeyedQueue::default();
    for (id, location) in &calls {
        unanswered.push(id.as_str(), (id, location));
    }
    let (mut results, mut rest) = (Vec::new(), Vec::new());
    for block in draft.blocks.drain(..) {
        let ContentBlock::ToolResult { tool_use_id, .. } = &block.block else {
            rest.push(block);
            continue;
        };
        match unanswered.take(&**tool_use_id) {
            Some(_) => results.push(block),
            None => losses.dropped(block.location),
        }
    }
    for (id, location) in unanswered.into_rest() {
        let location = location.clone();
        losses.approximated(location.clone());
        let block = ContentBlock::ToolResult {
            tool_use_id: Cow::Owned(id.clone()),
            content: Some(MessagesContent::Text(NO_RESULT.into())),
            is_error: true,
        };
        results.push(DraftBlock { block, location });
    }
    results.append(&mut rest);
    draft.blocks = results;
}

/// Whether the turns end with tool results, and the turn with their calls does not start with signed
/// reasoning.
pub(super) fn ends_in_unsigned_tool_loop(drafts: &[TurnDraft<'_>]) -> bool {
    let [.., model, user] = drafts else {
        return false;
    };
    model.role == MessagesRole::Assistant
        && user.blocks.first().is_some_and(DraftBlock::is_result)
        && !model.blocks.first().is_some_and(DraftBlock::is_reasoning)
}

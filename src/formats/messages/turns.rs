//! The turns of a conversation: `system` and `messages`.

use super::blocks::{ContentBlock, MessagesContent};
use super::content::{BlockEncoder, BlockParent, decode_content};
use super::turn_order::{
    DraftBlock, MessagesRole, MessagesTurn, TurnDraft, ends_in_unsigned_tool_loop, match_results,
    merge_neighbours, move_system_turns,
};
use crate::formats::Capabilities;
use crate::json::{Fields, Node, Path};
use crate::model::{ApiError, FieldLocation, Losses, Part, PartKind, Request, Role, Turn};

/// Decodes `system` and `messages`.
pub(super) fn decode_turns<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Vec<Turn<'a>>, ApiError> {
    let mut turns = Vec::new();
    if let Some(node) = fields.node("system") {
        let parts = decode_content(node, BlockParent::System, losses)?;
        if !parts.is_empty() {
            turns.push(Turn {
                role: Role::System,
                parts,
                at: None,
            });
        }
    }
    let Some(node) = fields.node("messages") else {
        return fields.need("messages", None);
    };
    let path = node.path;
    let before = turns.len();
    node.each(|at, node| {
        turns.push(decode_turn(at, node, losses)?);
        Ok(())
    })?;
    if turns.len() == before {
        return Err(path.wrong("at least one message"));
    }
    Ok(turns)
}

fn decode_turn<'a>(at: u32, node: Node<'a, '_>, losses: &mut Losses) -> Result<Turn<'a>, ApiError> {
    node.fields(|mut fields| {
        let role = fields.text("role")?;
        let role = fields.need("role", role)?;
        let (role, parent) = match role.as_ref() {
            "user" => (Role::User, BlockParent::User),
            "assistant" => (Role::Model, BlockParent::Assistant),
            "system" => (Role::System, BlockParent::System),
            _ => return Err(Path::Key(&fields.path, "role").wrong("user, assistant or system")),
        };
        let Some(content) = fields.node("content") else {
            return fields.need("content", None);
        };
        let parts = decode_content(content, parent, losses)?;
        fields.finish(losses);
        Ok(Turn {
            role,
            parts,
            at: Some(at),
        })
    })
}

/// The encoded turns of a request.
pub(super) struct MessagesConversation<'a> {
    pub(super) system: Option<MessagesContent<'a>>,
    pub(super) messages: Vec<MessagesTurn<'a>>,
    /// The last turn holds tool results, and the turn with their calls has lost its signed reasoning.
    pub(super) ends_in_unsigned_tool_loop: bool,
}

/// The text of a turn that the format requires and the client did not send.
pub(super) const CONTINUED: &str = "(continued)";

/// Encodes the turns of a request in the order that the format requires.
pub(super) fn encode_turns<'a>(
    request: &'a Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Result<MessagesConversation<'a>, ApiError> {
    let mut encoder = BlockEncoder::new(losses);
    let mut drafts = Vec::with_capacity(request.turns.len());
    for turn in &request.turns {
        drafts.extend(encode_turn(turn, &mut encoder)?);
    }
    let (system, mut drafts) = move_system_turns(drafts, capabilities.messages_mid_system, losses);
    merge_neighbours(&mut drafts);
    let mut drafts = match_results(drafts, losses);
    // A dropped result may have been the only block between two turns of the model.
    merge_neighbours(&mut drafts);
    if drafts
        .first()
        .is_none_or(|draft| draft.role != MessagesRole::User)
    {
        let turn = drafts.first().and_then(|draft| draft.at);
        losses.approximated(FieldLocation::turn_or_all(turn));
        let block = ContentBlock::Text {
            text: CONTINUED.into(),
        };
        drafts.insert(0, TurnDraft::of(MessagesRole::User, block, turn));
    }
    if let Some(last) = drafts.last()
        && last.role == MessagesRole::Assistant
        && !capabilities.messages_prefill
    {
        let message =
            "the upstream of this model does not accept an assistant turn as the last one";
        return Err(ApiError::invalid(message).at_location(FieldLocation::Turn { turn: last.at }));
    }
    Ok(MessagesConversation {
        system: MessagesContent::of(system),
        ends_in_unsigned_tool_loop: ends_in_unsigned_tool_loop(&drafts),
        messages: drafts.into_iter().map(TurnDraft::finish).collect(),
    })
}

/// Encodes one turn; `None` if nothing of it may be sent.
fn encode_turn<'a>(
    turn: &'a Turn<'_>,
    encoder: &mut BlockEncoder<'a, '_>,
) -> Result<Option<TurnDraft<'a>>, ApiError> {
    let role = match turn.role {
        Role::System | Role::Developer => MessagesRole::System,
        Role::User => MessagesRole::User,
        Role::Model => MessagesRole::Assistant,
    };
    let mut blocks = Vec::with_capacity(turn.parts.len());
    let mut calls = 0;
    for part in &turn.parts {
        let location = FieldLocation::Part {
            turn: turn.at,
            part: part.at,
        };
        if role == MessagesRole::System && !matches!(part.kind, PartKind::Text(_)) {
            let message = "system turns may hold nothing but text";
            return Err(ApiError::invalid(message).at_location(location));
        }
        if let PartKind::Call(call) = &part.kind {
            let position = (turn.at.unwrap_or_default(), calls);
            encoder.encode_tool_use(call, position, &location, &mut blocks);
            calls += 1;
            continue;
        }
        let block = encoder.encode_block(&part.kind, role, &location)?;
        blocks.extend(block.map(|block| DraftBlock { block, location }));
    }
    if blocks.is_empty() {
        if turn.parts.iter().all(is_blank) {
            let location = FieldLocation::Turn { turn: turn.at };
            encoder.losses.approximated(location);
        }
        return Ok(None);
    }
    Ok(Some(TurnDraft {
        role,
        blocks,
        at: turn.at,
    }))
}

fn is_blank(part: &Part<'_>) -> bool {
    matches!(&part.kind, PartKind::Text(text) if text.trim().is_empty())
}

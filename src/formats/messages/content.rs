//! The content of turns and tool results: text, media, reasoning, tool calls and tool results.

use std::borrow::Cow;

use super::block_fields::{location_of, required_text, unexpected_block};
use super::blocks::{ContentBlock, MessagesContent};
use super::call_ids::CallIds;
use super::calls::{ToolInput, decode_tool_use, encode_input};
use super::media::{decode_document, decode_image, encode_media};
use super::thinking_blocks::{
    decode_redacted_thinking, decode_thinking_block, encode_own_reasoning,
};
use super::turn_order::{DraftBlock, MessagesRole};
use crate::formats::ids;
use crate::formats::keyed_queue::KeyedQueue;
use crate::json::{Fields, Node};
use crate::model::{
    ApiError, Call, FieldLocation, Json, Losses, Part, PartField, PartKind, ToolResult, borrowed,
};

/// What a content block belongs to, which decides the types it may have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum BlockParent {
    System,
    User,
    Assistant,
    ToolResult,
}

/// Decodes `content`: a string or an array of blocks.
pub(super) fn decode_content<'a>(
    node: Node<'a, '_>,
    parent: BlockParent,
    losses: &mut Losses,
) -> Result<Vec<Part<'a>>, ApiError> {
    let mut parts = Vec::new();
    match node.value {
        Json::Str(text) => parts.push(Part {
            kind: PartKind::Text(text),
            at: None,
        }),
        Json::Array(_) => node.each(|at, node| {
            node.fields(|fields| {
                if let Some(kind) = decode_block(fields, parent, losses)? {
                    parts.push(Part { kind, at: Some(at) });
                }
                Ok(())
            })
        })?,
        _ => return Err(node.wrong("a string or an array of blocks")),
    }
    Ok(parts)
}

fn decode_block<'a>(
    mut fields: Fields<'a, '_>,
    parent: BlockParent,
    losses: &mut Losses,
) -> Result<Option<PartKind<'a>>, ApiError> {
    use BlockParent::{Assistant, System, ToolResult, User};
    let kind = required_text(&mut fields, "type")?;
    let part = match (kind.as_ref(), parent) {
        ("text", _) => PartKind::Text(required_text(&mut fields, "text")?),
        ("image", User | Assistant | ToolResult) => {
            PartKind::Media(decode_image(&mut fields, losses)?)
        }
        ("document", User | Assistant | ToolResult) => {
            PartKind::Media(decode_document(&mut fields, losses)?)
        }
        ("thinking", Assistant) => decode_thinking_block(&mut fields)?,
        ("redacted_thinking", Assistant) => decode_redacted_thinking(&mut fields)?,
        ("tool_use", Assistant) => PartKind::Call(decode_tool_use(&mut fields)?),
        ("tool_result", User) => PartKind::Result(decode_tool_result(&mut fields, losses)?),
        // All tools are declared in the request anyway, so the reference adds only the name.
        ("tool_reference", ToolResult) => {
            losses.approximated(location_of(&fields));
            PartKind::Text(required_text(&mut fields, "tool_name")?)
        }
        ("tool_addition" | "tool_removal", System) => {
            losses.dropped(location_of(&fields));
            return Ok(None);
        }
        // Blocks of hosted tools may be dropped, because the model repeats their results in its
        // text. A `compaction` block may not: it replaces earlier turns.
        (kind, Assistant) if kind != "compaction" && kind != "tool_result" => {
            losses.dropped(location_of(&fields));
            return Ok(None);
        }
        (kind, _) => return Err(unexpected_block(kind, &fields)),
    };
    fields.finish(losses);
    Ok(Some(part))
}

fn decode_tool_result<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<ToolResult<'a>, ApiError> {
    let id = required_text(fields, "tool_use_id")?;
    let parts = match fields.node("content") {
        Some(node) => decode_content(node, BlockParent::ToolResult, losses)?,
        None => Vec::new(),
    };
    Ok(ToolResult {
        id: Some(id),
        name: None,
        parts,
        failed: fields.bool("is_error")?.unwrap_or(false),
    })
}

/// Encodes the parts of a request's turns as content blocks.
pub(super) struct BlockEncoder<'a, 'l> {
    ids: CallIds<'a>,
    /// Calls without an id whose results have not come yet: their names and the ids they got.
    pending: KeyedQueue<&'a str, String>,
    pub(super) losses: &'l mut Losses,
}

impl<'a, 'l> BlockEncoder<'a, 'l> {
    pub(super) fn new(losses: &'l mut Losses) -> BlockEncoder<'a, 'l> {
        BlockEncoder {
            ids: CallIds::default(),
            pending: KeyedQueue::default(),
            losses,
        }
    }

    /// Encodes any part but a call. `None`: nothing of it may be sent.
    pub(super) fn encode_block(
        &mut self,
        part: &'a PartKind<'_>,
        role: MessagesRole,
        location: &FieldLocation,
    ) -> Result<Option<ContentBlock<'a>>, ApiError> {
        Ok(match part {
            PartKind::Text(text) | PartKind::Refusal(text) => {
                let has_text = !text.trim().is_empty();
                if has_text && matches!(part, PartKind::Refusal(_)) {
                    self.losses.approximated(location.clone());
                }
                has_text.then(|| ContentBlock::Text {
                    text: borrowed(text),
                })
            }
            PartKind::Media(_) if role == MessagesRole::Assistant => {
                let message = "the upstream of this model takes no media in turns of the model";
                return Err(ApiError::invalid(message).at_location(location.clone()));
            }
            PartKind::Media(media) => Some(encode_media(media, location, self.losses)?),
            PartKind::Reasoning { text, signature } => {
                let block = encode_own_reasoning(text, signature.as_ref());
                if block.is_none() {
                    self.losses.dropped(location.clone());
                }
                block
            }
            PartKind::Result(result) => Some(self.encode_tool_result(result, location)?),
            // `encode_tool_use` encodes calls: it needs their position.
            PartKind::Call(_) => None,
        })
    }

    /// Encodes a call. `position`: the index of its turn, and its own among the calls of the turn.
    pub(super) fn encode_tool_use(
        &mut self,
        call: &'a Call<'_>,
        (turn, ordinal): (u32, u32),
        location: &FieldLocation,
        blocks: &mut Vec<DraftBlock<'a>>,
    ) {
        if let Some(signature) = &call.signature {
            match encode_own_reasoning("", Some(signature)) {
                Some(block) => blocks.push(DraftBlock {
                    block,
                    location: location.clone(),
                }),
                None => self
                    .losses
                    .dropped(location.field(PartField::CallSignature)),
            }
        }
        let id = match non_empty(call.id.as_deref()) {
            Some(id) => {
                let encoded = self.ids.encode(id);
                if encoded != id {
                    self.losses.approximated(location.clone());
                }
                encoded
            }
            None => {
                let id = ids::past_call_id(turn, ordinal, &call.name);
                self.pending.push(&*call.name, id.clone());
                Cow::Owned(id)
            }
        };
        let input = encode_input(call);
        if matches!(input, ToolInput::Malformed { .. }) {
            self.losses.approximated(location.clone());
        }
        blocks.push(DraftBlock {
            block: ContentBlock::ToolUse {
                id,
                name: borrowed(&call.name),
                input,
            },
            location: location.clone(),
        });
    }

    fn encode_tool_result(
        &mut self,
        result: &'a ToolResult<'_>,
        location: &FieldLocation,
    ) -> Result<ContentBlock<'a>, ApiError> {
        let tool_use_id = match non_empty(result.id.as_deref()) {
            Some(id) => self.ids.encode(id),
            None => {
                let name = result.name.as_deref().unwrap_or_default();
                Cow::Owned(self.pending.take(name).unwrap_or_default())
            }
        };
        let mut blocks = Vec::new();
        for part in &result.parts {
            let location = location.in_tool_result(part.at);
            blocks.extend(self.encode_block(&part.kind, MessagesRole::User, &location)?);
        }
        Ok(ContentBlock::ToolResult {
            tool_use_id,
            content: MessagesContent::of(blocks),
            is_error: result.failed,
        })
    }
}

fn non_empty(id: Option<&str>) -> Option<&str> {
    id.filter(|id| !id.is_empty())
}

//! The conversation as turns that alternate, each call followed by its result.

use std::borrow::Cow;

use super::blocks_out::{Block, Content, media};
use super::call_ids::CallIds;
use super::drafts_out::{
    Draft, Message, Piece, Speaker, ends_in_unproven_loop, match_results, merge, settle_system,
};
use super::response::{Input, input};
use crate::formats::{Capabilities, identity};
use crate::model::{
    ApiError, Call, FieldLocation, Issuer, Losses, Part, PartField, PartKind, Request, Role,
    Signature, ToolResult, Turn,
};

pub(super) struct Conversation<'a> {
    pub(super) system: Option<Content<'a>>,
    pub(super) messages: Vec<Message<'a>>,
    /// The results of calls come last, and the calls have lost the thoughts that led to them.
    pub(super) ends_in_unproven_loop: bool,
}

/// Stands where the format insists on a turn of the user.
pub(super) const CONTINUED: &str = "(continued)";

pub(super) fn write<'a>(
    request: &'a Request<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Result<Conversation<'a>, ApiError> {
    let mut writer = Writer {
        ids: CallIds::default(),
        unnamed: Vec::new(),
        losses,
    };
    let mut drafts = Vec::with_capacity(request.turns.len());
    for turn in &request.turns {
        drafts.extend(writer.draft(turn)?);
    }
    let (system, mut drafts) = settle_system(drafts, capabilities.messages_mid_system, losses);
    merge(&mut drafts);
    let mut drafts = match_results(drafts, losses);
    // A result that answers nothing may have been all that stood between two turns of the model.
    merge(&mut drafts);
    if drafts
        .first()
        .is_none_or(|draft| draft.speaker != Speaker::User)
    {
        let turn = drafts.first().and_then(|draft| draft.at);
        losses.approximated(FieldLocation::Turn { turn });
        drafts.insert(
            0,
            Draft::of(Speaker::User, Block::Text { text: CONTINUED }, turn),
        );
    }
    if let Some(last) = drafts.last()
        && last.speaker == Speaker::Assistant
        && !capabilities.messages_prefill
    {
        let message = "the upstream of this model cannot go on from words of its own";
        return Err(ApiError::invalid(message).at_location(FieldLocation::Turn { turn: last.at }));
    }
    Ok(Conversation {
        system: Content::of(system),
        ends_in_unproven_loop: ends_in_unproven_loop(&drafts),
        messages: drafts.into_iter().map(Draft::finish).collect(),
    })
}

struct Writer<'a, 'l> {
    ids: CallIds<'a>,
    /// Calls without an id that wait for their results: name and the id they were given.
    unnamed: Vec<(&'a str, String)>,
    losses: &'l mut Losses,
}

impl<'a> Writer<'a, '_> {
    /// `None`: the turn says nothing.
    fn draft(&mut self, turn: &'a Turn<'_>) -> Result<Option<Draft<'a>>, ApiError> {
        let speaker = match turn.role {
            Role::System | Role::Developer => Speaker::System,
            Role::User => Speaker::User,
            Role::Model => Speaker::Assistant,
        };
        let mut pieces = Vec::with_capacity(turn.parts.len());
        let mut calls = 0;
        for part in &turn.parts {
            let place = FieldLocation::Part {
                turn: turn.at,
                part: part.at,
            };
            if speaker == Speaker::System && !matches!(part.kind, PartKind::Text(_)) {
                let message = "system turns may hold nothing but text";
                return Err(ApiError::invalid(message).at_location(place));
            }
            if let PartKind::Call(call) = &part.kind {
                let position = turn.at.unwrap_or_default();
                self.call(call, (position, calls), &place, &mut pieces);
                calls += 1;
                continue;
            }
            let block = self.block(&part.kind, speaker, &place)?;
            pieces.extend(block.map(|block| Piece { block, place }));
        }
        if pieces.is_empty() {
            if turn.parts.iter().all(is_blank) {
                self.losses
                    .approximated(FieldLocation::Turn { turn: turn.at });
            }
            return Ok(None);
        }
        Ok(Some(Draft {
            speaker,
            pieces,
            at: turn.at,
        }))
    }

    fn block(
        &mut self,
        part: &'a PartKind<'_>,
        speaker: Speaker,
        place: &FieldLocation,
    ) -> Result<Option<Block<'a>>, ApiError> {
        Ok(match part {
            PartKind::Text(text) | PartKind::Refusal(text) => {
                let says = !text.trim().is_empty();
                if says && matches!(part, PartKind::Refusal(_)) {
                    self.losses.approximated(place.clone());
                }
                says.then_some(Block::Text { text })
            }
            PartKind::Media(_) if speaker == Speaker::Assistant => {
                let message = "the upstream of this model takes no media in turns of the model";
                return Err(ApiError::invalid(message).at_location(place.clone()));
            }
            PartKind::Media(found) => Some(media(found, place, self.losses)?),
            PartKind::Reasoning { text, signature } => {
                let block = thought(text, signature.as_ref());
                if block.is_none() {
                    self.losses.dropped(place.clone());
                }
                block
            }
            PartKind::Result(result) => Some(self.result(result, place)?),
            // Written by the caller, who knows where it stands.
            PartKind::Call(_) => None,
        })
    }

    fn call(
        &mut self,
        call: &'a Call<'_>,
        (position, ordinal): (u32, u32),
        place: &FieldLocation,
        pieces: &mut Vec<Piece<'a>>,
    ) {
        if let Some(signature) = &call.signature {
            match thought("", Some(signature)) {
                Some(block) => pieces.push(Piece {
                    block,
                    place: place.clone(),
                }),
                None => self.losses.dropped(place.field(PartField::CallSignature)),
            }
        }
        let id = match given(call.id.as_deref()) {
            Some(id) => {
                let legal = self.ids.write(id);
                if legal != id {
                    self.losses.approximated(place.clone());
                }
                legal
            }
            None => {
                let id = identity::past_call_id(position, ordinal, &call.name);
                self.unnamed.push((&call.name, id.clone()));
                Cow::Owned(id)
            }
        };
        let input = input(call);
        if matches!(input, Input::Unreadable { .. }) {
            self.losses.approximated(place.clone());
        }
        pieces.push(Piece {
            block: Block::ToolUse {
                id,
                name: &call.name,
                input,
            },
            place: place.clone(),
        });
    }

    fn result(
        &mut self,
        result: &'a ToolResult<'_>,
        place: &FieldLocation,
    ) -> Result<Block<'a>, ApiError> {
        let tool_use_id = match given(result.id.as_deref()) {
            Some(id) => self.ids.write(id),
            None => {
                let name = result.name.as_deref().unwrap_or_default();
                let waiting = self.unnamed.iter().position(|(known, _)| *known == name);
                Cow::Owned(waiting.map_or_else(String::new, |at| self.unnamed.remove(at).1))
            }
        };
        let mut blocks = Vec::new();
        for part in &result.parts {
            let place = place.in_tool_result(part.at);
            blocks.extend(self.block(&part.kind, Speaker::User, &place)?);
        }
        Ok(Block::ToolResult {
            tool_use_id,
            content: Content::of(blocks),
            is_error: result.failed,
        })
    }
}

fn is_blank(part: &Part<'_>) -> bool {
    matches!(&part.kind, PartKind::Text(text) if text.trim().is_empty())
}

fn given(id: Option<&str>) -> Option<&str> {
    id.filter(|id| !id.is_empty())
}

/// Only what the format itself has signed may go back, and only with the words that were signed.
fn thought<'a>(text: &'a str, signature: Option<&'a Signature<'_>>) -> Option<Block<'a>> {
    let Signature { issuer, data } = signature?;
    match issuer {
        Issuer::Thinking if !text.is_empty() => Some(Block::Thinking {
            thinking: text,
            signature: data,
        }),
        Issuer::Redacted => Some(Block::RedactedThinking { data }),
        Issuer::Thinking | Issuer::Native | Issuer::Responses => None,
    }
}

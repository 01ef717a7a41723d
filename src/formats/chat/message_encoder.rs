//! Turns, encoded as messages one after the other: between calls and their results nothing else may stand.

use std::borrow::Cow;

use super::calls::{ChatToolCall, encode_call_in_history, id_in_history};
use super::chat_message::{ASSISTANT, ChatMessage};
use super::error::unsupported_content;
use super::parts::{ChatContent, ChatContentPart, encode_media};
use super::text::append_text;
use crate::formats::UpstreamTarget;
use crate::formats::keyed_queue::KeyedQueue;
use crate::formats::media_kind::MediaKind;
use crate::model::{
    ApiError, Call, FieldLocation, Losses, Part, PartField, PartKind, Role, ToolResult, Turn,
    borrowed,
};

/// Encodes turns one after the other.
pub(super) struct MessageEncoder<'a, 'l> {
    pub(super) messages: Vec<ChatMessage<'a>>,
    uses_developer_role: bool,
    returns_reasoning: bool,
    /// Ids of the calls whose results are still to come.
    open_calls: KeyedQueue<Cow<'a, str>, ()>,
    /// Media of tool results, which only a user message can hold.
    result_media: Vec<ChatContentPart<'a>>,
    /// Messages between calls and their results: nothing may stand there.
    delayed: Vec<ChatMessage<'a>>,
    losses: &'l mut Losses,
}

const fn part_location(turn: &Turn<'_>, part: &Part<'_>) -> FieldLocation {
    FieldLocation::Part {
        turn: turn.at,
        part: part.at,
    }
}

impl<'a, 'l> MessageEncoder<'a, 'l> {
    /// Makes an encoder for this many turns to an upstream.
    pub(super) fn new(
        turns: usize,
        target: &UpstreamTarget<'_>,
        losses: &'l mut Losses,
    ) -> MessageEncoder<'a, 'l> {
        MessageEncoder {
            messages: Vec::with_capacity(turns),
            uses_developer_role: target.capabilities.chat_developer_role,
            returns_reasoning: target.capabilities.chat_returns_reasoning,
            open_calls: KeyedQueue::default(),
            result_media: Vec::new(),
            delayed: Vec::new(),
            losses,
        }
    }

    /// Encodes a system turn. Those at the start are joined into one message, later ones stay in place.
    pub(super) fn encode_system(&mut self, turn: &'a Turn<'_>) -> Result<(), ApiError> {
        let mut parts = Vec::new();
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => parts.push(ChatContentPart::Text { text }),
                _ => {
                    return Err(unsupported_content(
                        &part_location(turn, part),
                        "system turns hold only text",
                    ));
                }
            }
        }
        let role = if self.uses_developer_role || turn.role == Role::Developer {
            "developer"
        } else {
            "system"
        };
        if parts.is_empty() {
            return Ok(());
        }
        if let [opening] = self.messages.as_mut_slice()
            && opening.role == role
        {
            let opened = opening.content.take().map(ChatContent::into_parts);
            let mut opened = opened.unwrap_or_default();
            opened.append(&mut parts);
            opening.content = ChatContent::new(opened);
            return Ok(());
        }
        self.push_message(ChatMessage::new(role, ChatContent::new(parts)));
        Ok(())
    }

    /// Encodes a user turn, tool results first: they must follow their calls.
    pub(super) fn encode_user(&mut self, turn: &'a Turn<'_>) -> Result<(), ApiError> {
        let mut has_results = false;
        for part in &turn.parts {
            if let PartKind::Result(result) = &part.kind {
                has_results = true;
                self.encode_result(result, &part_location(turn, part))?;
            }
        }
        let mut parts = Vec::new();
        for part in &turn.parts {
            match &part.kind {
                PartKind::Result(_) => {}
                PartKind::Text(text) | PartKind::Refusal(text) => {
                    if !text.is_empty() {
                        parts.push(ChatContentPart::Text { text });
                    }
                }
                PartKind::Media(media) => {
                    let part = encode_media(media, &part_location(turn, part), self.losses)?;
                    parts.push(part);
                }
                PartKind::Reasoning { .. } | PartKind::Call(_) => {
                    return Err(unsupported_content(
                        &part_location(turn, part),
                        "only a model thinks and calls",
                    ));
                }
            }
        }
        if has_results && !parts.is_empty() {
            parts.splice(0..0, self.result_media.drain(..));
        }
        if let Some(content) = ChatContent::new(parts) {
            self.push_message(ChatMessage::new("user", Some(content)));
        } else if !has_results {
            self.losses
                .approximated(FieldLocation::Turn { turn: turn.at });
        }
        Ok(())
    }

    /// Encodes a tool result; one that answers no open call is dropped.
    fn encode_result(
        &mut self,
        result: &'a ToolResult<'_>,
        location: &FieldLocation,
    ) -> Result<(), ApiError> {
        let answered = result.id.as_deref().and_then(|id| self.open_calls.take(id));
        if answered.is_none() {
            self.losses.dropped(location.clone());
            return Ok(());
        }
        if result.failed {
            self.losses.dropped(location.field(PartField::Failure));
        }
        let (mut texts, mut moved) = (Vec::new(), None);
        for part in &result.parts {
            let location = &location.in_tool_result(part.at);
            match &part.kind {
                PartKind::Text(text) | PartKind::Refusal(text) => {
                    if !text.is_empty() {
                        texts.push(ChatContentPart::Text { text });
                    }
                }
                PartKind::Media(media) => match encode_media(media, location, self.losses)? {
                    text @ ChatContentPart::Text { .. } => texts.push(text),
                    part => {
                        self.losses.approximated(location.clone());
                        self.result_media.push(part);
                        moved.get_or_insert(MediaKind::of_mime(&media.mime));
                    }
                },
                PartKind::Reasoning { .. } | PartKind::Call(_) | PartKind::Result(_) => {
                    return Err(unsupported_content(
                        location,
                        "results hold only text and media",
                    ));
                }
            }
        }
        // The content of a result is required, even if it is empty.
        let empty = ChatContent::Text(moved.map_or("", MediaKind::moved_notice));
        let content = ChatContent::new(texts).unwrap_or(empty);
        self.messages.push(ChatMessage {
            tool_call_id: result.id.as_deref(),
            ..ChatMessage::new("tool", Some(content))
        });
        Ok(())
    }

    /// Encodes a turn of the model; `is_in_loop`: it belongs to the tool loop that is still running.
    pub(super) fn encode_assistant(
        &mut self,
        turn: &'a Turn<'_>,
        is_in_loop: bool,
    ) -> Result<(), ApiError> {
        self.flush_delayed();
        let follows_calls = self.messages.last().is_some_and(has_calls);
        let mut message = ChatMessage::new(ASSISTANT, None);
        let mut texts = Vec::new();
        for part in &turn.parts {
            let location = part_location(turn, part);
            match &part.kind {
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => {
                    // The format puts text before calls, whatever their order was.
                    if follows_calls || has_calls(&message) {
                        self.losses.approximated(location);
                    }
                    texts.push(ChatContentPart::Text { text });
                }
                PartKind::Refusal(text) => append_text(&mut message.refusal, Some(borrowed(text))),
                PartKind::Reasoning {
                    text,
                    signature: None,
                } if self.returns_reasoning && is_in_loop && !text.is_empty() => {
                    append_text(&mut message.reasoning_content, Some(borrowed(text)));
                }
                PartKind::Reasoning { .. } => self.losses.dropped(location),
                PartKind::Call(call) => {
                    if call.signature.is_some() {
                        self.losses
                            .dropped(location.field(PartField::CallSignature));
                    }
                    let call = self.encode_call(call, turn, message.tool_calls.len());
                    message.tool_calls.push(call);
                }
                PartKind::Media(_) => {
                    return Err(unsupported_content(
                        &location,
                        "a model's own turn holds only text and calls",
                    ));
                }
                PartKind::Result(_) => {
                    return Err(unsupported_content(&location, "a model answers no calls"));
                }
            }
        }
        message.content = ChatContent::new(texts);
        if message.is_empty() {
            self.losses
                .approximated(FieldLocation::Turn { turn: turn.at });
            return Ok(());
        }
        match self.messages.last_mut() {
            // A step with calls is one message, however many turns the client made of it: results
            // must follow right after it.
            Some(before) if before.is_of_model() && (follows_calls || has_calls(&message)) => {
                before.append(message);
            }
            _ => self.messages.push(message),
        }
        Ok(())
    }

    /// Encodes a call and notes its id.
    fn encode_call(
        &mut self,
        call: &'a Call<'_>,
        turn: &Turn<'_>,
        ordinal: usize,
    ) -> ChatToolCall<'a> {
        let id = id_in_history(call, turn, ordinal);
        self.open_calls.push(id.clone(), ());
        encode_call_in_history(call, id)
    }

    /// Adds a message that is not of the model, once the open calls have their results.
    fn push_message(&mut self, message: ChatMessage<'a>) {
        if self.open_calls.is_empty() {
            self.flush_delayed();
            self.messages.push(message);
        } else {
            self.delayed.push(message);
        }
    }

    /// Adds what had to wait for the results of calls.
    pub(super) fn flush_delayed(&mut self) {
        if let Some(content) = ChatContent::new(std::mem::take(&mut self.result_media)) {
            self.messages.push(ChatMessage::new("user", Some(content)));
        }
        self.messages.append(&mut self.delayed);
    }
}

fn has_calls(message: &ChatMessage<'_>) -> bool {
    !message.tool_calls.is_empty()
}

//! One message of a request to an upstream.

use serde::Serialize;

use super::calls::ChatToolCall;
use super::parts::ChatContent;
use crate::model::Text;

/// The role of the model's messages.
pub(super) const ASSISTANT: &str = "assistant";

/// One entry of `messages` in a request body.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
pub(super) struct ChatMessage<'a> {
    pub(super) role: &'static str,
    /// Null in a message that holds only calls.
    #[serialize_always]
    pub(super) content: Option<ChatContent<'a>>,
    pub(super) reasoning_content: Option<Text<'a>>,
    pub(super) refusal: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ChatToolCall<'a>>,
    pub(super) tool_call_id: Option<&'a str>,
}

impl<'a> ChatMessage<'a> {
    pub(super) const fn new(
        role: &'static str,
        content: Option<ChatContent<'a>>,
    ) -> ChatMessage<'a> {
        ChatMessage {
            role,
            content,
            reasoning_content: None,
            refusal: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.content.is_none() && self.refusal.is_none() && self.tool_calls.is_empty()
    }

    pub(super) fn is_of_model(&self) -> bool {
        self.role == ASSISTANT
    }

    /// Appends what the model said next.
    pub(super) fn append(&mut self, next: ChatMessage<'a>) {
        let mut parts = self
            .content
            .take()
            .map_or_else(Vec::new, ChatContent::into_parts);
        parts.extend(next.content.into_iter().flat_map(ChatContent::into_parts));
        self.content = ChatContent::new(parts);
        join(&mut self.reasoning_content, next.reasoning_content);
        join(&mut self.refusal, next.refusal);
        self.tool_calls.extend(next.tool_calls);
    }
}

fn join<'a>(whole: &mut Option<Text<'a>>, next: Option<Text<'a>>) {
    match (whole, next) {
        (_, None) => {}
        (Some(whole), Some(next)) => whole.to_mut().push_str(&next),
        (whole @ None, next) => *whole = next,
    }
}

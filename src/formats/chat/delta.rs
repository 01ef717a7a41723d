//! The `delta` of a chunk, of which the message of a JSON response is gathered.

use serde::Serialize;

use super::annotations::ChatAnnotation;
use super::calls::ChatToolCall;
use super::output_media::{ChatOutputAudio, ChatOutputImage};
use super::reasoning::ChatReasoningDetail;
use crate::model::Text;

/// An encoded `delta`.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub(super) struct ChatDelta<'a> {
    pub(super) role: Option<&'static str>,
    pub(super) content: Option<Text<'a>>,
    pub(super) reasoning_content: Option<Text<'a>>,
    pub(super) refusal: Option<Text<'a>>,
    pub(super) tool_calls: Option<[ChatToolCall<'a>; 1]>,
    pub(super) reasoning_details: Option<[ChatReasoningDetail<'a>; 1]>,
    pub(super) annotations: Option<Vec<ChatAnnotation<'a>>>,
    pub(super) images: Option<[ChatOutputImage<'a>; 1]>,
    pub(super) audio: Option<ChatOutputAudio<'a>>,
}

impl<'a> ChatDelta<'a> {
    /// A delta of one tool call.
    pub(super) fn of_call(call: ChatToolCall<'a>) -> ChatDelta<'a> {
        ChatDelta {
            tool_calls: Some([call]),
            ..ChatDelta::default()
        }
    }
}

/// Takes the deltas of a choice: a stream sends each of them, a JSON response gathers them.
pub(super) trait DeltaSink<'event, 'held> {
    /// Takes the next delta.
    fn push(&mut self, delta: ChatDelta<'event>);
    /// Adds text of an event to text that is needed after it. A stream copies it; a JSON response borrows it.
    fn hold(&self, held: &mut Text<'held>, more: &Text<'event>);
}

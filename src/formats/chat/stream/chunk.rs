//! The encoded chunks of a stream.

use serde::Serialize;

use crate::formats::chat::annotations::ChatAnnotation;
use crate::formats::chat::calls::ChatToolCall;
use crate::formats::chat::identity::ChatIdentity;
use crate::formats::chat::logprobs::ChatLogprobs;
use crate::formats::chat::output_media::{ChatOutputAudio, ChatOutputImage};
use crate::formats::chat::reasoning::ChatReasoningDetail;
use crate::formats::chat::usage::ChatUsage;
use crate::formats::json_bytes::to_json_bytes;
use crate::sse::SseWriter;

/// The fields that every chunk begins with.
#[derive(Serialize)]
struct ChunkHead<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
}

/// The other fields of a chunk.
#[derive(Serialize)]
struct ChatChunk<'a> {
    choices: &'a [ChatChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
}

#[derive(Serialize)]
pub(super) struct ChatChunkChoice<'a> {
    index: u32,
    delta: ChatDelta<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<ChatLogprobs<'a>>,
    finish_reason: Option<&'static str>,
}

/// The `delta` of a chunk.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub(super) struct ChatDelta<'a> {
    pub(super) role: Option<&'static str>,
    pub(super) content: Option<&'a str>,
    pub(super) reasoning_content: Option<&'a str>,
    pub(super) refusal: Option<&'a str>,
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

    /// A delta with one entry of `reasoning_details`.
    pub(super) fn of_detail(detail: ChatReasoningDetail<'a>) -> ChatDelta<'a> {
        ChatDelta {
            reasoning_details: Some([detail]),
            ..ChatDelta::default()
        }
    }
}

/// Encodes the fields that every chunk begins with, once per stream.
pub(super) fn encode_head(identity: &ChatIdentity) -> Vec<u8> {
    let head = ChunkHead {
        id: &identity.id,
        object: "chat.completion.chunk",
        created: identity.created,
        model: &identity.model,
    };
    to_json_bytes(&head, 0)
}

/// Writes a chunk with one delta.
pub(super) fn write_delta(
    head: &[u8],
    choice: u32,
    chunk_delta: ChatDelta<'_>,
    out: &mut SseWriter,
) {
    write_choice(head, choice, chunk_delta, None, None, out);
}

/// Writes a chunk with one choice.
pub(super) fn write_choice(
    head: &[u8],
    index: u32,
    delta: ChatDelta<'_>,
    logprobs: Option<ChatLogprobs<'_>>,
    finish_reason: Option<&'static str>,
    out: &mut SseWriter,
) {
    let choice = ChatChunkChoice {
        index,
        delta,
        logprobs,
        finish_reason,
    };
    write_chunk(head, &[choice], None, out);
}

/// Writes a chunk.
pub(super) fn write_chunk(
    head: &[u8],
    choices: &[ChatChunkChoice<'_>],
    usage: Option<ChatUsage>,
    out: &mut SseWriter,
) {
    out.joined(head, &ChatChunk { choices, usage });
}

//! The encoded chunks of a stream.

use serde::Serialize;

use crate::formats::chat::delta::{ChatDelta, DeltaSink};
use crate::formats::chat::identity::ChatIdentity;
use crate::formats::chat::logprobs::ChatLogprobs;
use crate::formats::chat::usage::ChatUsage;
use crate::formats::json_bytes::to_json_bytes;
use crate::model::Text;
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
struct ChatChunkChoice<'a> {
    index: u32,
    delta: ChatDelta<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<ChatLogprobs<'a>>,
    finish_reason: Option<&'static str>,
}

/// Encodes the fields that every chunk begins with, once per stream.
pub(super) fn encode_head(identity: &ChatIdentity<'_>) -> Vec<u8> {
    let head = ChunkHead {
        id: &identity.id,
        object: "chat.completion.chunk",
        created: identity.created,
        model: &identity.model,
    };
    to_json_bytes(&head, 0)
}

/// Writes the chunk with the usage, which has no choices.
pub(super) fn write_usage(head: &[u8], usage: ChatUsage, out: &mut SseWriter) {
    let chunk = ChatChunk {
        choices: &[],
        usage: Some(usage),
    };
    out.joined(head, &chunk);
}

/// Writes the chunks of one choice.
pub(super) struct ChoiceChunks<'o> {
    pub(super) head: &'o [u8],
    pub(super) choice: u32,
    pub(super) out: &'o mut SseWriter,
}

impl ChoiceChunks<'_> {
    /// Writes a chunk.
    pub(super) fn write(
        &mut self,
        delta: ChatDelta<'_>,
        logprobs: Option<ChatLogprobs<'_>>,
        finish_reason: Option<&'static str>,
    ) {
        let choice = ChatChunkChoice {
            index: self.choice,
            delta,
            logprobs,
            finish_reason,
        };
        let chunk = ChatChunk {
            choices: &[choice],
            usage: None,
        };
        self.out.joined(self.head, &chunk);
    }
}

impl<'event> DeltaSink<'event, 'static> for ChoiceChunks<'_> {
    fn push(&mut self, delta: ChatDelta<'event>) {
        self.write(delta, None, None);
    }

    fn hold(&self, held: &mut Text<'static>, more: &Text<'event>) {
        held.to_mut().push_str(more);
    }
}

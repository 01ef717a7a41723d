//! The response that the last event of a stream holds, in formats that have it there.

use bytes::Bytes;

use crate::formats::ConversationCodec;
use crate::sse::SseFrames;

/// Decodes the response of a final event: only complete events are sent, so it is in one chunk.
pub(super) fn final_response(codec: &dyn ConversationCodec, sent: &[u8]) -> Option<Bytes> {
    let mut found = None;
    SseFrames::default().push(sent, |frame| {
        let response = frame.data.and_then(|data| codec.final_response(&data));
        found = found.take().or(response);
    });
    found
}

//! Streams of the format: `message_start`, content blocks one after another, `message_delta`, `message_stop`.

mod decode;
mod encode;

pub(super) use decode::MessagesStreamDecoder;
pub(super) use encode::MessagesStreamEncoder;

use super::Messages;
use crate::formats::{ResponseOptions, StreamCodec, StreamDecoder, StreamEncoder};
use crate::sse::SseWriter;

impl StreamCodec for Messages {
    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(MessagesStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(MessagesStreamEncoder::new(options))
    }

    /// A `ping` event; before `message_start` a comment, because clients expect that event first.
    fn encode_keep_alive(&self, started: bool, out: &mut SseWriter) {
        #[derive(serde::Serialize)]
        struct Ping {
            r#type: &'static str,
        }
        match started {
            true => out.event("ping", &Ping { r#type: "ping" }),
            false => out.comment("ping"),
        }
    }
}

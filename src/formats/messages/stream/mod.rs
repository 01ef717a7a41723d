//! Streams of the format: `message_start`, content blocks one after another, `message_delta`, `message_stop`.

mod decode;
mod encode;

pub(super) use decode::MessagesStreamDecoder;
pub(super) use encode::MessagesStreamEncoder;

//! Streams: the events of a response, as server-sent events.

mod decode;
mod encode;
pub(super) mod events;
mod progress;

pub(super) use decode::ResponsesStreamDecoder;
pub(super) use encode::ResponsesStreamEncoder;

//! Streams of `chat.completion.chunk` events, decoded and encoded.

mod chunk;
mod decode;
mod decoded_calls;
mod encode;
mod nesting;

pub(super) use decode::ChatStreamDecoder;
pub(super) use encode::ChatStreamEncoder;

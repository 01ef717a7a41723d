//! The streamed response: every chunk is a `GenerateContentResponse` with the new parts alone.

mod decode;
mod encode;
mod framing;
mod partial_call;

pub(super) use decode::NativeStreamDecoder;
pub(super) use encode::NativeStreamEncoder;
pub(super) use framing::DONE;

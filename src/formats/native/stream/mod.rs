//! The streamed response: every chunk is a `GenerateContentResponse` with the new parts alone.

mod decode;
mod encode;
mod framing;
mod partial_call;

pub(super) use decode::NativeStreamDecoder;
pub(super) use encode::NativeStreamEncoder;
pub(super) use framing::DONE;

use super::Native;
use crate::formats::{ResponseOptions, StreamCodec, StreamDecoder, StreamEncoder};

impl StreamCodec for Native {
    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(NativeStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(NativeStreamEncoder::new(options))
    }

    fn allows_any_framing(&self) -> bool {
        false
    }
}

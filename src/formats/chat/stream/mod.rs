//! Streams of `chat.completion.chunk` events, decoded and encoded.

mod chunk;
mod decode;
mod decoded_calls;
mod encode;
mod nesting;

pub(super) use decode::ChatStreamDecoder;
pub(super) use encode::ChatStreamEncoder;

use super::Chat;
use crate::formats::{ResponseOptions, StreamCodec, StreamDecoder, StreamEncoder};

impl StreamCodec for Chat {
    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(ChatStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(ChatStreamEncoder::new(options))
    }
}

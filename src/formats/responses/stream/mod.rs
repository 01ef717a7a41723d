//! Streams: the events of a response, as server-sent events.

mod decode;
mod encode;
pub(super) mod events;
mod progress;

pub(super) use decode::ResponsesStreamDecoder;
pub(super) use encode::ResponsesStreamEncoder;

use super::Responses;
use crate::formats::{ResponseOptions, StreamCodec, StreamDecoder, StreamEncoder};

impl StreamCodec for Responses {
    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(ResponsesStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(ResponsesStreamEncoder::new(options))
    }
}

//! The reply in pieces.

use crate::formats::{Asked, StreamEncoder};
use crate::model::{Event, Fault};
use crate::sse::SseWriter;

pub(super) struct Encoder;

impl Encoder {
    pub(super) fn new(_asked: &Asked) -> Encoder {
        Encoder
    }
}

impl StreamEncoder for Encoder {
    fn event(&mut self, _event: Event<'_>, _out: &mut SseWriter) {}

    fn fault(&mut self, fault: &Fault, out: &mut SseWriter) {
        super::error::encode_in_stream(fault, out);
    }
}

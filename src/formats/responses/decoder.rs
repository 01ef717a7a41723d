//! Streams of an upstream of this format.

use crate::formats::StreamDecoder;
use crate::model::{Event, Fault};

#[derive(Debug, Default)]
pub(super) struct Decoder;

impl StreamDecoder for Decoder {
    fn event(&mut self, _data: &str, _out: &mut dyn FnMut(Event<'_>)) -> Result<(), Fault> {
        Ok(())
    }

    fn close(&mut self, _out: &mut dyn FnMut(Event<'_>)) -> Result<(), Fault> {
        Ok(())
    }
}

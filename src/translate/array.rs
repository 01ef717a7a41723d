//! A stream that is one JSON array: its bytes pass, its elements are read on the way.

use bytes::Bytes;

use super::reply::{cut_short, too_long};
use crate::formats::{Codec, Watch};
use crate::json::Elements;
use crate::model::Fault;

pub(super) struct ArrayTap {
    codec: &'static dyn Codec,
    elements: Elements,
}

impl ArrayTap {
    pub(super) fn new(codec: &'static dyn Codec) -> ArrayTap {
        ArrayTap {
            codec,
            elements: Elements::default(),
        }
    }

    pub(super) fn push(
        &mut self,
        chunk: Bytes,
        end: bool,
        limit: usize,
        watch: &mut Watch,
        out: &mut Option<Bytes>,
    ) -> Result<(), Fault> {
        let mut fault = None;
        self.elements.push(&chunk, |element| {
            let text = String::from_utf8_lossy(element);
            if fault.is_none() {
                fault = self.codec.glance_event(&text, watch).err();
            }
        });
        match fault {
            Some(fault) => return Err(fault),
            None if self.elements.held() > limit => return Err(too_long(limit)),
            None if end && !(watch.ended && self.elements.closed()) => return Err(cut_short()),
            None => {}
        }
        *out = (!chunk.is_empty()).then_some(chunk);
        Ok(())
    }
}

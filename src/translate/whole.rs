//! A JSON reply: gathered, read once, sent with the client's name for the model.

use bytes::Bytes;

use super::gather::Gathered;
use super::reply::too_long;
use crate::formats::{Codec, Watch};
use crate::json::{Edit, replace};
use crate::model::Fault;

pub(super) struct Whole {
    codec: &'static dyn Codec,
    /// The client's id for the model, as JSON.
    name: Vec<u8>,
    /// A count of tokens is no reply of a model: it must be JSON, and nothing in it is read.
    counted: bool,
    gathered: Gathered,
}

impl Whole {
    pub(super) fn new(codec: &'static dyn Codec, name: Vec<u8>, counted: bool) -> Whole {
        Whole {
            codec,
            name,
            counted,
            gathered: Gathered::default(),
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: Bytes,
        end: bool,
        limit: usize,
        watch: &mut Watch,
        out: &mut Option<Bytes>,
    ) -> Result<(), Fault> {
        self.gathered.add(bytes);
        if self.gathered.len() > limit {
            return Err(too_long(limit));
        }
        if end {
            *out = Some(self.finish(watch)?);
        }
        Ok(())
    }

    fn finish(&mut self, watch: &mut Watch) -> Result<Bytes, Fault> {
        let body = self.gathered.take();
        if self.counted {
            let _: serde::de::IgnoredAny = serde_json::from_slice(&body).map_err(|error| {
                Fault::bad_gateway(format!("the upstream's reply is not readable: {error}"))
            })?;
            return Ok(body);
        }
        let glance = self.codec.glance_reply(&body, watch)?;
        Ok(match glance.model {
            Some(range) if body[range.clone()] != *self.name => {
                let with = std::mem::take(&mut self.name);
                replace(&body, &[Edit { range, with }])
            }
            _ => body,
        })
    }
}

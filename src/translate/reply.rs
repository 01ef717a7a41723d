//! What is being done to the reply of this request: the one thing the body filter talks to.

use bytes::Bytes;

use super::Wanted;
use super::array::ArrayTap;
use super::tap::Tap;
use super::whole::Whole;
use crate::formats::{Codec, Framing, Operation, Watch, quoted};
use crate::model::Fault;

/// How much of a reply must be there before any of it may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// All of it: one JSON document with a length.
    Whole,
    /// The first piece that holds content.
    Stream,
}

pub struct Reply {
    way: Way,
    watch: Watch,
    limit: usize,
}

enum Way {
    Whole(Whole),
    Events(Tap),
    Array(ArrayTap),
}

impl Reply {
    /// From a successful header; wrong content types are found here, before anything is read.
    pub fn choose(
        codec: &'static dyn Codec,
        wanted: &Wanted,
        content_type: &str,
        limit: usize,
    ) -> Result<Reply, Fault> {
        let mime = content_type.split(';').next().unwrap_or("").trim();
        let is = |expected: &str| mime.eq_ignore_ascii_case(expected);
        let name = quoted(&wanted.model);
        let way = match (wanted.stream, wanted.operation) {
            (true, Operation::Stream(Framing::Array)) if is("application/json") => {
                Way::Array(ArrayTap::new(codec))
            }
            (true, _) if is("text/event-stream") => {
                Way::Events(Tap::new(codec, name, wanted.hides_usage()))
            }
            (false, _) if is("application/json") || mime.is_empty() => {
                let counted = wanted.operation == Operation::CountTokens;
                Way::Whole(Whole::new(codec, name, counted))
            }
            _ => {
                let expected = if wanted.stream { "a stream" } else { "JSON" };
                let mime = if mime.is_empty() {
                    "no content type"
                } else {
                    mime
                };
                return Err(Fault::bad_gateway(format!(
                    "the upstream answered with {mime} instead of {expected}"
                )));
            }
        };
        Ok(Reply {
            way,
            watch: Watch::default(),
            limit,
        })
    }

    pub fn kind(&self) -> ReplyKind {
        match self.way {
            Way::Whole(_) => ReplyKind::Whole,
            Way::Events(_) | Way::Array(_) => ReplyKind::Stream,
        }
    }

    /// Bytes of the upstream become bytes for the client, in place. `Err`: the reply is broken;
    /// bytes left in `chunk` were good and come before the break.
    pub fn push(&mut self, chunk: &mut Option<Bytes>, end: bool) -> Result<(), Fault> {
        let bytes = chunk.take().unwrap_or_default();
        match &mut self.way {
            Way::Whole(whole) => whole.push(bytes, end, self.limit, &mut self.watch, chunk),
            Way::Events(tap) => tap.push(&bytes, end, self.limit, &mut self.watch, chunk),
            Way::Array(tap) => tap.push(&bytes, end, self.limit, &mut self.watch, chunk),
        }
    }

    /// What has been learned so far: usage, whether content came, whether the end was proper.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }
}

/// The reply ended without the format's own mark of an end.
pub(super) fn cut_short() -> Fault {
    Fault::bad_gateway("the upstream's stream broke off before its end")
}

pub(super) fn too_long(limit: usize) -> Fault {
    Fault::bad_gateway(format!(
        "the upstream's reply holds more than {limit} bytes in one piece"
    ))
}

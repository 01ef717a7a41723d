//! How the pieces of a stream stand on the wire: `data: ` lines, or the members of a JSON array.

use serde::Serialize;

use crate::formats::Framing;
use crate::sse::SseWriter;

pub(super) struct Framer {
    framing: Framing,
    begun: bool,
}

impl Framer {
    pub(super) fn new(framing: Framing) -> Framer {
        Framer {
            framing,
            begun: false,
        }
    }

    pub(super) fn write(&mut self, piece: &impl Serialize, out: &mut SseWriter) {
        match self.framing {
            Framing::Sse => out.data(piece),
            Framing::Array => {
                self.separate(out);
                out.json(piece);
            }
        }
    }

    /// A piece that begins with what every piece repeats.
    pub(super) fn join(&mut self, repeated: &[u8], piece: &impl Serialize, out: &mut SseWriter) {
        match self.framing {
            Framing::Sse => out.joined(repeated, piece),
            Framing::Array => {
                self.separate(out);
                out.join(repeated, piece);
            }
        }
    }

    fn separate(&mut self, out: &mut SseWriter) {
        let begun = std::mem::replace(&mut self.begun, true);
        out.raw(if begun { b",\n" } else { b"[" });
    }

    /// The end has a mark of its own only in an array.
    pub(super) fn close(&mut self, out: &mut SseWriter) {
        if self.framing == Framing::Array {
            out.raw(if self.begun { b"]" } else { b"[]" });
        }
    }
}

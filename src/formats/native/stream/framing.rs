//! The framing of chunks: `data: ` lines of server-sent events, or the elements of a JSON array.

use serde::Serialize;

use crate::formats::Framing;
use crate::sse::SseWriter;

/// The end of a stream in another format, which proxies in front of an upstream may add.
pub(in crate::formats::native) const DONE: &str = "[DONE]";

/// Writes chunks in the framing that the client requested.
pub(super) struct ChunkFramer {
    framing: Framing,
    begun: bool,
}

impl ChunkFramer {
    pub(super) fn new(framing: Framing) -> ChunkFramer {
        ChunkFramer {
            framing,
            begun: false,
        }
    }

    pub(super) fn write_chunk(&mut self, chunk: &impl Serialize, out: &mut SseWriter) {
        match self.framing {
            Framing::Sse => out.data(chunk),
            Framing::Array => {
                self.separate(out);
                out.json(chunk);
            }
        }
    }

    /// Writes a chunk that begins with fields which are JSON already.
    pub(super) fn write_joined(
        &mut self,
        fields: &[u8],
        chunk: &impl Serialize,
        out: &mut SseWriter,
    ) {
        match self.framing {
            Framing::Sse => out.joined(fields, chunk),
            Framing::Array => {
                self.separate(out);
                out.join(fields, chunk);
            }
        }
    }

    fn separate(&mut self, out: &mut SseWriter) {
        let begun = std::mem::replace(&mut self.begun, true);
        out.raw(if begun { b",\n" } else { b"[" });
    }

    /// Ends the stream; only an array has an end of its own.
    pub(super) fn close(&mut self, out: &mut SseWriter) {
        if self.framing == Framing::Array {
            out.raw(if self.begun { b"]" } else { b"[]" });
        }
    }
}

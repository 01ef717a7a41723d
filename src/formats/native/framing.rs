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
            Framing::Sse => write_event(piece, out),
            Framing::Array => {
                out.raw(if self.begun { b",\n" } else { b"[" });
                out.raw(to_line(piece).as_bytes());
            }
        }
        self.begun = true;
    }

    /// The end has a mark of its own only in an array.
    pub(super) fn close(&mut self, out: &mut SseWriter) {
        if self.framing == Framing::Array {
            out.raw(if self.begun { b"]" } else { b"[]" });
        }
    }
}

pub(super) fn write_event(piece: &impl Serialize, out: &mut SseWriter) {
    out.raw(b"data: ");
    out.raw(to_line(piece).as_bytes());
    out.raw(b"\n\n");
}

/// JSON that stays one line even for readers that break lines at every line end Unicode knows.
fn to_line(piece: &impl Serialize) -> String {
    let json = serde_json::to_string(piece)
        .expect("our own structs with string keys always serialise to memory");
    if !json.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        return json;
    }
    json.replace('\u{85}', "\\u0085")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

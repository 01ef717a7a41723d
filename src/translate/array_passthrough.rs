//! Passes a stream that is one JSON array through to the client, and observes its elements.
//!
//! Only complete elements are sent, so that an error can follow as one more element.

use bytes::{Bytes, BytesMut};

use super::upstream_error::{
    chunk_too_large, decode_bare_error, incomplete_stream, undecoded_event,
};
use crate::formats::{Codec, ResponseObserver};
use crate::json::ArrayElements;
use crate::model::ApiError;
use crate::sse::SseWriter;

/// A JSON array that passes through.
pub(super) struct ArrayPassthrough {
    codec: &'static dyn Codec,
    elements: ArrayElements,
    /// The bytes after the last complete element.
    pending: BytesMut,
    /// Whether any element has been passed on, and with it the array's opening bracket.
    begun: bool,
}

impl ArrayPassthrough {
    pub(super) fn new(codec: &'static dyn Codec) -> ArrayPassthrough {
        ArrayPassthrough {
            codec,
            elements: ArrayElements::default(),
            pending: BytesMut::new(),
            begun: false,
        }
    }

    /// An element that is not complete is held twice: as it came, and as it is read.
    pub(super) fn buffered(&self) -> usize {
        self.pending.len() + self.elements.buffered()
    }

    /// Passes a chunk through.
    pub(super) fn push(
        &mut self,
        chunk: &Bytes,
        end: bool,
        limit: usize,
        observer: &mut ResponseObserver,
        out: &mut Option<Bytes>,
    ) -> Result<(), ApiError> {
        let (mut good, mut api_error) = (0, None);
        let array_end = self.elements.push(chunk, |element, element_end| {
            let text = String::from_utf8_lossy(element);
            if api_error.is_none() {
                let failed = self.codec.observe_event(&text, observer).err();
                api_error =
                    failed.map(|api_error| undecoded_event(self.codec, &text, api_error, observer));
                good = if api_error.is_none() {
                    element_end
                } else {
                    good
                };
            }
        });
        match self.elements.closed() {
            true if api_error.is_none() && observer.ended => {
                good = chunk.len();
                observer.closed = true;
            }
            closed if closed || end => {
                let array = || [&self.pending, &chunk[..array_end]].concat();
                let bare = || decode_bare_error(self.codec, &array());
                let known = api_error.or_else(bare);
                if known.is_none() {
                    observer.note_end();
                }
                api_error = known.or_else(|| Some(incomplete_stream()));
            }
            _ => {}
        }
        *out = self.send(chunk, good);
        self.begun |= good > 0;
        match api_error {
            Some(api_error) => Err(api_error),
            None if self.pending.len() > limit => Err(chunk_too_large(limit, observer)),
            None => Ok(()),
        }
    }

    /// Encodes an error as the last element of the array.
    pub(super) fn encode_error(&self, api_error: &ApiError, out: &mut SseWriter) {
        let (_, body) = self.codec.encode_error(api_error, "");
        out.raw(if self.begun { b",\n" } else { b"[" });
        out.raw(&body);
        out.raw(b"]");
    }

    /// Returns the pending bytes and the good part of a chunk; the rest becomes pending.
    fn send(&mut self, chunk: &Bytes, good: usize) -> Option<Bytes> {
        let passed = (good > 0).then(|| {
            if self.pending.is_empty() {
                return chunk.slice(..good);
            }
            self.pending.extend_from_slice(&chunk[..good]);
            self.pending.split().freeze()
        });
        self.pending.extend_from_slice(&chunk[good..]);
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Format;

    #[test]
    fn the_array_is_closed_at_its_end() {
        let mut array = ArrayPassthrough::new(Format::Native.codec());
        let mut observer = ResponseObserver::default();
        let element = r#"[{"candidates":[{"content":{},"finishReason":"STOP"}]}"#;
        for (chunk, closed) in [(element, false), ("\n", false), ("]", true), ("\n", true)] {
            let chunk = Bytes::from_static(chunk.as_bytes());
            let pushed = array.push(&chunk, false, 1024, &mut observer, &mut None);
            pushed.expect("a good chunk");
            assert_eq!(
                (observer.ended, observer.closed),
                (true, closed),
                "{chunk:?}"
            );
        }
    }

    #[test]
    fn what_waits_for_the_rest_of_its_element_is_counted() {
        let mut array = ArrayPassthrough::new(Format::Native.codec());
        let mut push = |chunk: &'static str| {
            let chunk = Bytes::from_static(chunk.as_bytes());
            let mut observer = ResponseObserver::default();
            let pushed = array.push(&chunk, false, 1024, &mut observer, &mut None);
            pushed.expect("a good chunk");
            array.buffered()
        };
        assert_eq!(push(r#"[{"candidates":"#), 15 + 14);
        assert_eq!(push("[]"), 17 + 16);
        assert_eq!(push("}"), 0);
    }

    #[test]
    fn an_error_in_place_of_the_array_is_decoded() {
        let mut array = ArrayPassthrough::new(Format::Native.codec());
        let mut push = |chunk: &'static str, end| {
            let chunk = Bytes::from_static(chunk.as_bytes());
            array.push(
                &chunk,
                end,
                1024,
                &mut ResponseObserver::default(),
                &mut None,
            )
        };
        assert_eq!(push(r#"{"error":{"code":429,"#, false), Ok(()));
        let api_error = push(r#""message":"Busy."}} and more"#, true).expect_err("an error");
        assert_eq!((api_error.status, &*api_error.message), (429, "Busy."));
    }

    #[test]
    fn an_error_is_the_last_element_also_where_it_is_the_first() {
        let api_error = incomplete_stream();
        for (chunk, elements) in [("[", 1), (r#"[{"candidates":[]}"#, 2)] {
            let mut array = ArrayPassthrough::new(Format::Native.codec());
            let (mut sent, mut out) = (None, SseWriter::default());
            let chunk = Bytes::from_static(chunk.as_bytes());
            let mut observer = ResponseObserver::default();
            let pushed = array.push(&chunk, false, 1024, &mut observer, &mut sent);
            pushed.expect("a good chunk");
            array.encode_error(&api_error, &mut out);
            let whole = [sent.unwrap_or_default(), out.take()].concat();
            let read: Vec<serde_json::Value> = serde_json::from_slice(&whole).expect("an array");
            assert_eq!(read.len(), elements, "{read:?}");
        }
    }
}

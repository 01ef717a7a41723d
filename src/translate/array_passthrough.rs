//! Passes a stream that is one JSON array through to the client, and observes its elements.
//!
//! Only complete elements are sent, so that an error can follow as one more element.

use bytes::{Bytes, BytesMut};

use super::upstream_error::{chunk_too_large, decode_bare_error, incomplete_stream};
use crate::formats::{Codec, ResponseObserver};
use crate::json::ArrayElements;
use crate::model::ApiError;

/// A JSON array that passes through.
pub(super) struct ArrayPassthrough {
    codec: &'static dyn Codec,
    elements: ArrayElements,
    /// The bytes after the last complete element.
    pending: BytesMut,
}

impl ArrayPassthrough {
    pub(super) fn new(codec: &'static dyn Codec) -> ArrayPassthrough {
        ArrayPassthrough {
            codec,
            elements: ArrayElements::default(),
            pending: BytesMut::new(),
        }
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
        self.elements.push(chunk, |element, element_end| {
            let text = String::from_utf8_lossy(element);
            if api_error.is_none() {
                api_error = self.codec.observe_event(&text, observer).err();
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
                let bare = || decode_bare_error(self.codec, &[&self.pending, &chunk[..]].concat());
                api_error = api_error
                    .or_else(bare)
                    .or_else(|| Some(incomplete_stream()));
            }
            _ => {}
        }
        *out = self.send(chunk, good);
        match api_error {
            Some(api_error) => Err(api_error),
            None if self.pending.len() > limit => Err(chunk_too_large(limit)),
            None => Ok(()),
        }
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
        let api_error = push(r#""message":"Busy."}}"#, true).expect_err("an error");
        assert_eq!((api_error.status, &*api_error.message), (429, "Busy."));
    }
}

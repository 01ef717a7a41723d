//! A stream that is one JSON array: its bytes pass, its elements are read on the way.
//!
//! Only complete elements go out: whatever breaks after them, an error can still be told as
//! one more element.

use bytes::{Bytes, BytesMut};

use super::reply::{bare_error, cut_short, too_long};
use crate::formats::{Codec, ResponseObserver};
use crate::json::ArrayElements;
use crate::model::ApiError;

pub(super) struct ArrayTap {
    codec: &'static dyn Codec,
    elements: ArrayElements,
    /// What came after the last complete element.
    waiting: BytesMut,
}

impl ArrayTap {
    pub(super) fn new(codec: &'static dyn Codec) -> ArrayTap {
        ArrayTap {
            codec,
            elements: ArrayElements::default(),
            waiting: BytesMut::new(),
        }
    }

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
                let bare = || bare_error(self.codec, &[&self.waiting, &chunk[..]].concat());
                api_error = api_error.or_else(bare).or_else(|| Some(cut_short()));
            }
            _ => {}
        }
        *out = self.pass(chunk, good);
        match api_error {
            Some(api_error) => Err(api_error),
            None if self.waiting.len() > limit => Err(too_long(limit)),
            None => Ok(()),
        }
    }

    /// What waited and the good part of a chunk; its rest waits.
    fn pass(&mut self, chunk: &Bytes, good: usize) -> Option<Bytes> {
        let passed = (good > 0).then(|| {
            if self.waiting.is_empty() {
                return chunk.slice(..good);
            }
            self.waiting.extend_from_slice(&chunk[..good]);
            self.waiting.split().freeze()
        });
        self.waiting.extend_from_slice(&chunk[good..]);
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Format;

    #[test]
    fn a_reader_of_the_array_stops_at_its_end() {
        let mut tap = ArrayTap::new(Format::Native.codec());
        let mut observer = ResponseObserver::default();
        let element = r#"[{"candidates":[{"content":{},"finishReason":"STOP"}]}"#;
        for (piece, closed) in [(element, false), ("\n", false), ("]", true), ("\n", true)] {
            let piece = Bytes::from_static(piece.as_bytes());
            let pushed = tap.push(&piece, false, 1024, &mut observer, &mut None);
            pushed.expect("a good piece");
            assert_eq!(
                (observer.ended, observer.closed),
                (true, closed),
                "{piece:?}"
            );
        }
    }

    #[test]
    fn an_error_in_the_place_of_the_array_is_told_as_it_is() {
        let mut tap = ArrayTap::new(Format::Native.codec());
        let mut push = |piece: &'static str, end| {
            let piece = Bytes::from_static(piece.as_bytes());
            tap.push(
                &piece,
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

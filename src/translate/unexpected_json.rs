//! Handles a JSON document in place of a stream: nearly always an error with the wrong status.

use bytes::Bytes;

use super::body_buffer::BodyBuffer;
use super::upstream_error::{decode_bare_error, unexpected_content_type};
use crate::formats::{Codec, ResponseObserver};
use crate::model::ApiError;

/// A JSON document in place of a stream.
pub(super) struct UnexpectedJson {
    codec: &'static dyn Codec,
    /// Its content type.
    mime: String,
    buffer: BodyBuffer,
}

/// The longest body that may be an error.
const MAX_ERROR_BYTES: usize = 1 << 20;

impl UnexpectedJson {
    pub(super) fn new(codec: &'static dyn Codec, mime: &str) -> UnexpectedJson {
        UnexpectedJson {
            codec,
            mime: mime.to_owned(),
            buffer: BodyBuffer::default(),
        }
    }

    /// Buffers a chunk. `Err`: the error of the whole document.
    pub(super) fn push(
        &mut self,
        bytes: Bytes,
        end: bool,
        observer: &mut ResponseObserver,
    ) -> Result<(), ApiError> {
        self.buffer.push(bytes);
        if !end && self.buffer.len() <= MAX_ERROR_BYTES {
            return Ok(());
        }
        let body = self.buffer.take();
        observer.is_unread = !end;
        observer.usage = self.codec.reported_usage(&body);
        let error = decode_bare_error(self.codec, &body);
        Err(error.unwrap_or_else(|| unexpected_content_type(&self.mime, true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Format;

    fn decoded(chunks: &[&'static str]) -> ApiError {
        let mut json = UnexpectedJson::new(Format::Native.codec(), "application/json");
        let mut observer = ResponseObserver::default();
        for chunk in chunks {
            let chunk = Bytes::from_static(chunk.as_bytes());
            let pushed = json.push(chunk, false, &mut observer);
            pushed.expect("no error before the end");
        }
        let pushed = json.push(Bytes::new(), true, &mut observer);
        pushed.expect_err("no stream")
    }

    #[test]
    fn an_error_in_place_of_a_stream_is_decoded() {
        let error = r#"{"code":429,"message":"Busy.","status":"RESOURCE_EXHAUSTED"}}"#;
        for start in [r#"{"error":"#, r#"[{"error":"#] {
            let end = if start.starts_with('[') { "]" } else { "" };
            let api_error = decoded(&[start, error, end]);
            assert_eq!((api_error.status, &*api_error.message), (429, "Busy."));
        }
        let api_error = decoded(&[r#"{"candidates":[]}"#]);
        assert_eq!(api_error.status, 502);
        assert!(api_error.message.contains("application/json"));
    }
}

//! One JSON document where a stream was wanted: nearly always an error that came with the wrong
//! status.

use bytes::Bytes;

use super::gather::BodyBuffer;
use super::reply::{bare_error, unexpected};
use crate::formats::Codec;
use crate::model::ApiError;

pub(super) struct Instead {
    codec: &'static dyn Codec,
    /// What the upstream calls it.
    mime: String,
    gathered: BodyBuffer,
}

/// Errors are short: what goes on for longer is none.
const LIMIT: usize = 1 << 20;

impl Instead {
    pub(super) fn new(codec: &'static dyn Codec, mime: &str) -> Instead {
        Instead {
            codec,
            mime: mime.to_owned(),
            gathered: BodyBuffer::default(),
        }
    }

    pub(super) fn push(&mut self, bytes: Bytes, end: bool) -> Result<(), ApiError> {
        self.gathered.push(bytes);
        if !end && self.gathered.len() <= LIMIT {
            return Ok(());
        }
        let error = bare_error(self.codec, &self.gathered.take());
        Err(error.unwrap_or_else(|| unexpected(&self.mime, true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Format;

    fn told(pieces: &[&'static str]) -> ApiError {
        let mut instead = Instead::new(Format::Native.codec(), "application/json");
        for piece in pieces {
            let pushed = instead.push(Bytes::from_static(piece.as_bytes()), false);
            pushed.expect("nothing is said before the end");
        }
        instead.push(Bytes::new(), true).expect_err("no stream")
    }

    #[test]
    fn an_error_is_told_as_what_it_is() {
        let error = r#"{"code":429,"message":"Busy.","status":"RESOURCE_EXHAUSTED"}}"#;
        for start in [r#"{"error":"#, r#"[{"error":"#] {
            let end = if start.starts_with('[') { "]" } else { "" };
            let api_error = told(&[start, error, end]);
            assert_eq!((api_error.status, &*api_error.message), (429, "Busy."));
        }
        let api_error = told(&[r#"{"candidates":[]}"#]);
        assert_eq!(api_error.status, 502);
        assert!(api_error.message.contains("application/json"));
    }
}

//! Bodies of upstreams that compress although they were asked not to.

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use pingora_core::protocols::http::compression::{Algorithm, Encode};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;

/// The body without its compression; `None` inside: there is none.
pub(super) struct Plain(Option<Box<dyn Encode + Send + Sync>>);

impl Plain {
    pub(super) fn of(header: &ResponseHeader) -> Result<Plain> {
        let Some(coding) = header.headers.get(CONTENT_ENCODING) else {
            return Ok(Plain(None));
        };
        let coding = coding.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        if coding == "identity" {
            return Ok(Plain(None));
        }
        match Algorithm::from(coding.as_str()).decompressor(true) {
            Some(decompressor) => Ok(Plain(Some(decompressor))),
            None => Err(Error::explain(
                ErrorType::InvalidHTTPHeader,
                format!("the upstream compresses with {coding}"),
            )
            .into_up()),
        }
    }

    pub(super) fn chunk(&mut self, chunk: Option<Bytes>) -> Result<Option<Bytes>> {
        let Some(decompressor) = &mut self.0 else {
            return Ok(chunk);
        };
        let end = chunk.is_none();
        let plain = decompressor.encode(&chunk.unwrap_or_default(), end);
        plain
            .map(|bytes| (!bytes.is_empty()).then_some(bytes))
            .map_err(|error| error.into_up())
    }
}

//! Bodies of upstreams that compress although they were asked not to.

use std::io::Write as _;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::header::CONTENT_ENCODING;
use pingora_core::protocols::http::compression::{Algorithm, Encode};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;

/// The body without its compression.
pub(super) enum Plain {
    Already,
    /// By hand: pingora's keeps the last bytes of a chunk back until the next one comes, and a
    /// stream has to hand over every event at once.
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Other(Box<dyn Encode + Send + Sync>),
}

impl Plain {
    pub(super) fn of(header: &ResponseHeader) -> Result<Plain> {
        let Some(coding) = header.headers.get(CONTENT_ENCODING) else {
            return Ok(Plain::Already);
        };
        let coding = coding.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        match coding.as_str() {
            "identity" => Ok(Plain::Already),
            "gzip" | "x-gzip" => Ok(Plain::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            other => match Algorithm::from(other).decompressor(true) {
                Some(decompressor) => Ok(Plain::Other(decompressor)),
                None => Err(unreadable(format!("the upstream compresses with {coding}"))),
            },
        }
    }

    pub(super) fn chunk(&mut self, chunk: Option<Bytes>) -> Result<Option<Bytes>> {
        let end = chunk.is_none();
        let plain = match self {
            Plain::Already => return Ok(chunk),
            Plain::Gzip(decoder) => unzip(decoder, &chunk.unwrap_or_default(), end)
                .map_err(|error| unreadable(format!("gzip: {error}")))?,
            Plain::Other(decompressor) => decompressor
                .encode(&chunk.unwrap_or_default(), end)
                .map_err(|error| error.into_up())?,
        };
        Ok((!plain.is_empty()).then_some(plain))
    }
}

fn unzip(decoder: &mut MultiGzDecoder<Vec<u8>>, bytes: &[u8], end: bool) -> std::io::Result<Bytes> {
    decoder.write_all(bytes)?;
    if end {
        decoder.try_finish()?;
    } else {
        decoder.flush()?;
    }
    Ok(std::mem::take(decoder.get_mut()).into())
}

fn unreadable(what: String) -> Box<Error> {
    Error::explain(ErrorType::InvalidHTTPHeader, what).into_up()
}

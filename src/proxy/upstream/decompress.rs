//! Decompresses the bodies of upstreams that compress although they were asked not to.

use std::io::{self, Write};

use brotli::DecompressorWriter;
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::HeaderValue;
use pingora_core::{Error, ErrorType, Result};

/// The decoder of a body's content encoding. pingora's own decoders hold the last bytes of a chunk
/// back until the next one comes, where a stream has to hand over every event at once, and they
/// have no limit on what a chunk expands to.
pub(in crate::proxy) enum Decompressor {
    Identity,
    Gzip(Box<MultiGzDecoder<BoundedOutput>>),
    Brotli(Box<DecompressorWriter<BoundedOutput>>),
}

impl Decompressor {
    /// No chunk may expand to more than `limit` bytes.
    pub(in crate::proxy) fn new(
        coding: Option<&HeaderValue>,
        limit: usize,
    ) -> Result<Decompressor> {
        let Some(coding) = coding else {
            return Ok(Decompressor::Identity);
        };
        let coding = coding.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        let out = BoundedOutput {
            bytes: Vec::new(),
            limit,
        };
        match coding.as_str() {
            "identity" => Ok(Decompressor::Identity),
            "gzip" | "x-gzip" => Ok(Decompressor::Gzip(Box::new(MultiGzDecoder::new(out)))),
            "br" => Ok(Decompressor::Brotli(Box::new(DecompressorWriter::new(
                out,
                BROTLI_BUFFER,
            )))),
            _ => Err(unreadable(format!("the upstream compresses with {coding}"))),
        }
    }

    /// Decompresses one chunk; `None` is the end of the body.
    pub(in crate::proxy) fn decompress(&mut self, chunk: Option<Bytes>) -> Result<Option<Bytes>> {
        let end = chunk.is_none();
        let bytes = match self {
            Decompressor::Identity => return Ok(chunk),
            _ => chunk.unwrap_or_default(),
        };
        // A small chunk may expand to a lot, while other requests of the thread must go on.
        let decompressed = tokio::task::block_in_place(|| match self {
            Decompressor::Identity => Ok(bytes),
            Decompressor::Gzip(decoder) => decode_gzip(decoder, &bytes, end),
            Decompressor::Brotli(decoder) => decode_brotli(decoder, &bytes, end),
        });
        let decompressed =
            decompressed.map_err(|error| unreadable(format!("compressed: {error}")))?;
        Ok((!decompressed.is_empty()).then_some(decompressed))
    }
}

const BROTLI_BUFFER: usize = 4096;

fn decode_gzip(
    decoder: &mut MultiGzDecoder<BoundedOutput>,
    bytes: &[u8],
    end: bool,
) -> io::Result<Bytes> {
    decoder.write_all(bytes)?;
    if end {
        decoder.try_finish()?;
    } else {
        decoder.flush()?;
    }
    Ok(decoder.get_mut().take())
}

fn decode_brotli(
    decoder: &mut DecompressorWriter<BoundedOutput>,
    bytes: &[u8],
    end: bool,
) -> io::Result<Bytes> {
    decoder.write_all(bytes)?;
    if end {
        decoder.close()?;
    } else {
        decoder.flush()?;
    }
    Ok(decoder.get_mut().take())
}

/// What one chunk expands to, up to a limit.
pub(in crate::proxy) struct BoundedOutput {
    bytes: Vec<u8>,
    limit: usize,
}

impl BoundedOutput {
    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }
}

impl Write for BoundedOutput {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.limit {
            let message = format!("more than {} bytes in one chunk", self.limit);
            return Err(io::Error::other(message));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The kind of the errors here.
pub(in crate::proxy) const UNREADABLE_BODY: &str = "UnreadableBody";

fn unreadable(what: String) -> Box<Error> {
    Error::explain(ErrorType::Custom(UNREADABLE_BODY), what).into_up()
}

//! Bodies of upstreams that compress although they were asked not to.

use std::io::{self, Write};

use brotli::DecompressorWriter;
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::HeaderValue;
use pingora_core::{Error, ErrorType, Result};

/// The body without its compression. By hand: pingora's decoders keep the last bytes of a chunk
/// back until the next one comes, where a stream has to hand over every event at once, and they
/// make whatever a chunk asks for of it, be it gigabytes.
pub(super) enum Plain {
    Already,
    Gzip(Box<MultiGzDecoder<Bounded>>),
    Brotli(Box<DecompressorWriter<Bounded>>),
}

impl Plain {
    /// No chunk may become more than so many bytes.
    pub(super) fn of(coding: Option<&HeaderValue>, limit: usize) -> Result<Plain> {
        let Some(coding) = coding else {
            return Ok(Plain::Already);
        };
        let coding = coding.to_str().unwrap_or("?").trim().to_ascii_lowercase();
        let out = Bounded {
            bytes: Vec::new(),
            limit,
        };
        match coding.as_str() {
            "identity" => Ok(Plain::Already),
            "gzip" | "x-gzip" => Ok(Plain::Gzip(Box::new(MultiGzDecoder::new(out)))),
            "br" => Ok(Plain::Brotli(Box::new(DecompressorWriter::new(
                out,
                BROTLI_BUFFER,
            )))),
            _ => Err(unreadable(format!("the upstream compresses with {coding}"))),
        }
    }

    pub(super) fn chunk(&mut self, chunk: Option<Bytes>) -> Result<Option<Bytes>> {
        let end = chunk.is_none();
        let bytes = match self {
            Plain::Already => return Ok(chunk),
            _ => chunk.unwrap_or_default(),
        };
        let plain = match self {
            Plain::Already => return Ok(None),
            Plain::Gzip(decoder) => unzip(decoder, &bytes, end),
            Plain::Brotli(decoder) => unbrotli(decoder, &bytes, end),
        };
        let plain = plain.map_err(|error| unreadable(format!("compressed: {error}")))?;
        Ok((!plain.is_empty()).then_some(plain))
    }
}

const BROTLI_BUFFER: usize = 4096;

fn unzip(decoder: &mut MultiGzDecoder<Bounded>, bytes: &[u8], end: bool) -> io::Result<Bytes> {
    decoder.write_all(bytes)?;
    if end {
        decoder.try_finish()?;
    } else {
        decoder.flush()?;
    }
    Ok(decoder.get_mut().take())
}

fn unbrotli(
    decoder: &mut DecompressorWriter<Bounded>,
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

/// What came out of one chunk, up to a limit.
pub(super) struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Bounded {
    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.limit {
            let message = format!("more than {} bytes in one piece", self.limit);
            return Err(io::Error::other(message));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unreadable(what: String) -> Box<Error> {
    Error::explain(ErrorType::InvalidHTTPHeader, what).into_up()
}

//! Where headers and chunks begin and end among the bytes of a connection of HTTP/1.
//!
//! pingora parses a header anew after every read, up to 1 MiB of it: a header that comes byte by byte is held back here until it is
//! complete, and no more of it is kept than a header may have.

use tokio::io::ReadBuf;

use super::chunk_heads::ChunkHeads;
use super::header_scanner::HeaderScanner;

/// More than any client needs; what is longer is an accident or an attack.
pub(in crate::proxy) const HEADER_LIMIT: usize = 64 << 10;

/// The limit is one of names, values and the target; what stands between them is not counted there.
const MAX_KEPT: usize = HEADER_LIMIT + (8 << 10);

/// A header that is too long is read up to here, so that its client hears of it instead of seeing a reset.
const MAX_READ: usize = 1 << 20;

/// The longest end of a header. Of a request that was sent ahead, pingora may have all but this.
const MAX_END: usize = 4;

/// A buffer up to this size is kept for the next header.
const KEPT_CAPACITY: usize = 8 << 10;

/// How a body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum BodyFraming {
    /// Also without a body.
    Length(u64),
    Chunks,
}

/// What is known of a request when its header has been parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum FramingCheck {
    Valid,
    /// The header was cut.
    HeaderTooLong,
    InvalidChunk,
    /// The request was sent ahead, behind another one: nobody has seen where its chunks begin.
    Unknown,
}

/// What to do with bytes that have been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// They are read as they are.
    Pass,
    /// They were taken: others must come first.
    Hold,
    /// They were taken, and all that was held is to be read now.
    Release,
    InvalidChunk,
}

#[derive(Debug)]
pub(super) struct Http1Framing {
    /// Whether a header is being waited for.
    in_header: bool,
    scanner: HeaderScanner,
    /// How many bytes have come since the header is waited for.
    received: usize,
    /// How many of them are the header.
    header_length: Option<usize>,
    /// What is held back of a header, and what came with its end.
    held: Vec<u8>,
    /// How much of it has been read, once it may be.
    released: Option<usize>,
    is_cut: bool,
    /// Whether its first line is complete in what was kept of it.
    has_first_line: bool,
    /// How much has come behind the header.
    body_received: u64,
    body: Option<BodyFraming>,
    /// Checked from the start, as if the body were in chunks: what comes with the header is gone when that is known.
    chunks: ChunkHeads,
    /// Nothing of the request came with the one before it, so that all of these bytes are its own.
    is_exact: bool,
}

impl Default for Http1Framing {
    fn default() -> Http1Framing {
        Http1Framing {
            in_header: true,
            scanner: HeaderScanner::default(),
            received: 0,
            header_length: None,
            held: Vec::new(),
            released: None,
            is_cut: false,
            has_first_line: false,
            body_received: 0,
            body: Some(BodyFraming::Length(0)),
            chunks: ChunkHeads::default(),
            is_exact: true,
        }
    }
}

impl Http1Framing {
    /// The next header is waited for.
    pub(super) fn begin_header(&mut self) {
        let is_own = match self.body {
            Some(BodyFraming::Length(length)) => self.body_received <= length,
            Some(BodyFraming::Chunks) => self.chunks.has_ended(),
            None => false,
        };
        *self = Http1Framing {
            is_exact: self.is_exact && is_own,
            held: std::mem::take(&mut self.held),
            released: self.released,
            body: None,
            ..Http1Framing::default()
        };
    }

    /// The header has been parsed.
    pub(super) const fn end_header(&mut self) {
        self.in_header = false;
    }

    /// Notes how the body is delimited of a request whose header has this length.
    pub(super) fn set_body(&mut self, header_length: usize, body: BodyFraming) -> FramingCheck {
        // pingora also accepts targets that it has to rewrite; its header has another length then.
        self.is_exact &= self.header_length == Some(header_length);
        self.body = Some(body);
        match body {
            _ if self.is_cut => FramingCheck::HeaderTooLong,
            BodyFraming::Chunks if !self.is_exact => FramingCheck::Unknown,
            BodyFraming::Chunks if !self.chunks.is_valid() => FramingCheck::InvalidChunk,
            _ => FramingCheck::Valid,
        }
    }

    /// Tells whether a head of a chunk was wrong.
    pub(super) fn has_invalid_chunk(&self) -> bool {
        self.is_checked() && !self.chunks.is_valid()
    }

    fn is_checked(&self) -> bool {
        self.is_exact && self.body == Some(BodyFraming::Chunks)
    }

    /// Reads what was held back; `false`: there is nothing to read.
    pub(super) fn read_held(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let Some(read) = self.released else {
            return false;
        };
        let rest = &self.held[read..];
        let count = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..count]);
        self.released = Some(read + count);
        if read + count == self.held.len() {
            self.released = None;
            self.held.clear();
            self.held.shrink_to(KEPT_CAPACITY);
        }
        true
    }

    /// Looks at bytes that have been read.
    pub(super) fn note(&mut self, bytes: &[u8]) -> ReadOutcome {
        match (self.in_header, bytes.is_empty()) {
            // The connection has ended, and with it what is held.
            (_, true) => ReadOutcome::Pass,
            (true, false) => self.note_header(bytes),
            (false, false) => self.note_body(bytes),
        }
    }

    fn note_body(&mut self, bytes: &[u8]) -> ReadOutcome {
        self.body_received += bytes.len() as u64;
        match self.is_checked() && !self.chunks.check(bytes) {
            true => ReadOutcome::InvalidChunk,
            false => ReadOutcome::Pass,
        }
    }

    fn note_header(&mut self, bytes: &[u8]) -> ReadOutcome {
        let before = self.received;
        self.received += bytes.len();
        let end = self.scanner.scan(bytes);
        if let Some(end) = end {
            self.header_length = Some(before + end);
            self.body_received = (bytes.len() - end) as u64;
            self.chunks.check(&bytes[end..]);
        }
        self.is_cut |= self.received > MAX_KEPT;
        if !self.is_cut {
            self.has_first_line = self.scanner.has_first_line();
        }
        // What comes first is passed on: garbage is refused at once, and it may be the end of a header that was sent ahead.
        let is_first = before < MAX_END;
        if is_first || (end.is_some() && self.held.is_empty() && !self.is_cut) {
            return ReadOutcome::Pass;
        }
        if !self.is_cut {
            self.held.extend_from_slice(bytes);
        }
        match (end, self.is_cut) {
            (Some(_), false) => self.released = Some(0),
            (Some(_), true) => self.cut(),
            (None, _) if self.received >= MAX_READ => self.cut(),
            (None, _) => return ReadOutcome::Hold,
        }
        ReadOutcome::Release
    }

    /// Ends a header that is too long with the last line that is complete: so it can be parsed, and refused with a response.
    fn cut(&mut self) {
        match memchr::memrchr(b'\n', &self.held) {
            Some(end) => self.held.truncate(end + 1),
            None if self.has_first_line => self.held.extend_from_slice(b"\r\n"),
            None => self.held.extend_from_slice(b" HTTP/1.1\r\n"),
        }
        self.held.extend_from_slice(b"\r\n");
        self.released = Some(0);
    }
}

#[cfg(test)]
mod tests;

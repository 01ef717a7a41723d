//! The event streams of AWS (`application/vnd.amazon.eventstream`): splits a stream into messages, and writes messages.
//!
//! A message is its length, the length of its headers, a CRC-32 of these two, the headers, the payload, and a CRC-32 of
//! all before it; numbers are big endian.

use std::fmt;

/// The content type of such a stream.
pub const EVENT_STREAM: &str = "application/vnd.amazon.eventstream";

/// The two lengths and their checksum.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// The limits that AWS sets.
const MAX_HEADERS: usize = 128 << 10;
const MAX_PAYLOAD: usize = 24 << 20;

/// The type of a header whose value is text.
const TEXT: u8 = 7;

/// One message, whose checksums are right and whose headers can be read.
#[derive(Debug, PartialEq, Eq)]
pub struct EventStreamMessage<'a> {
    headers: Vec<(&'a str, &'a str)>,
    pub payload: &'a [u8],
}

impl<'a> EventStreamMessage<'a> {
    /// The value of a header that is text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }
}

/// Why a stream cannot be split any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventStreamError {
    /// A checksum is not that of its bytes.
    Checksum,
    /// A length is impossible.
    Length,
    /// A message is larger than the limit.
    TooLarge,
    /// The headers of a message cannot be read.
    Headers,
    /// The stream ends inside of a message.
    Cut,
}

impl fmt::Display for EventStreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EventStreamError::Checksum => "a message has a wrong checksum",
            EventStreamError::Length => "a message has an impossible length",
            EventStreamError::TooLarge => "a message is larger than the limit",
            EventStreamError::Headers => "the headers of a message cannot be read",
            EventStreamError::Cut => "it ends inside of a message",
        })
    }
}

/// Splits a byte stream into messages, wherever its chunks end. No more than one message is held, and its length is
/// checked before the rest of it is waited for.
#[derive(Debug, Default)]
pub struct EventStreamMessages {
    buffer: Vec<u8>,
}

impl EventStreamMessages {
    /// The number of bytes of a message that is not complete yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Hands over the messages that `chunk` completes. `limit`: how large a payload may be.
    pub fn push(
        &mut self,
        chunk: &[u8],
        limit: usize,
        mut each: impl FnMut(EventStreamMessage<'_>),
    ) -> Result<(), EventStreamError> {
        if self.buffer.is_empty() {
            let rest = cut(chunk, limit, &mut each)?;
            self.buffer.extend_from_slice(&chunk[rest..]);
        } else {
            self.buffer.extend_from_slice(chunk);
            let mut buffer = std::mem::take(&mut self.buffer);
            let rest = cut(&buffer, limit, &mut each)?;
            buffer.drain(..rest);
            self.buffer = buffer;
        }
        Ok(())
    }

    /// Ends the stream, which must end with a message.
    pub fn finish(&self) -> Result<(), EventStreamError> {
        match self.buffer.is_empty() {
            true => Ok(()),
            false => Err(EventStreamError::Cut),
        }
    }
}

/// Hands over the complete messages of `bytes`; returns the offset of the incomplete one.
fn cut(
    bytes: &[u8],
    limit: usize,
    each: &mut impl FnMut(EventStreamMessage<'_>),
) -> Result<usize, EventStreamError> {
    let mut at = 0;
    while let Some(lengths) = decode_prelude(&bytes[at..], limit)? {
        let Some(message) = bytes.get(at..at + lengths.total) else {
            break;
        };
        each(decode_message(message, &lengths)?);
        at += lengths.total;
    }
    Ok(at)
}

struct MessageLengths {
    total: usize,
    headers: usize,
}

/// Decodes the lengths of a message, once they are there.
fn decode_prelude(bytes: &[u8], limit: usize) -> Result<Option<MessageLengths>, EventStreamError> {
    let Some((lengths, checksum)) = bytes.get(..PRELUDE).map(|prelude| prelude.split_at(8)) else {
        return Ok(None);
    };
    if crc32fast::hash(lengths) != number(checksum) {
        return Err(EventStreamError::Checksum);
    }
    let (total, headers) = lengths.split_at(4);
    let (total, headers) = (number(total) as usize, number(headers) as usize);
    let payload = total.checked_sub(PRELUDE + CHECKSUM);
    let payload = payload.and_then(|rest| rest.checked_sub(headers));
    match payload {
        None => Err(EventStreamError::Length),
        Some(payload) if headers > MAX_HEADERS || payload > limit.min(MAX_PAYLOAD) => {
            Err(EventStreamError::TooLarge)
        }
        Some(_) => Ok(Some(MessageLengths { total, headers })),
    }
}

fn decode_message<'a>(
    message: &'a [u8],
    lengths: &MessageLengths,
) -> Result<EventStreamMessage<'a>, EventStreamError> {
    let (bytes, checksum) = message.split_at(message.len() - CHECKSUM);
    if crc32fast::hash(bytes) != number(checksum) {
        return Err(EventStreamError::Checksum);
    }
    let (headers, payload) = bytes[PRELUDE..].split_at(lengths.headers);
    let headers = decode_headers(headers).ok_or(EventStreamError::Headers)?;
    Ok(EventStreamMessage { headers, payload })
}

/// The headers whose values are text. `None`: they cannot be read.
fn decode_headers(mut bytes: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let length = take(&mut bytes, 1)?[0];
        let name = str::from_utf8(take(&mut bytes, length.into())?).ok()?;
        let kind = take(&mut bytes, 1)?[0];
        let length = match kind {
            // True and false.
            0 | 1 => 0,
            // Integers of 1, 2, 4 and 8 bytes.
            2..=5 => 1 << (kind - 2),
            // Bytes and text, after their length.
            6 | TEXT => usize::from(u16::from_be_bytes(take(&mut bytes, 2)?.try_into().ok()?)),
            // A time.
            8 => 8,
            // A UUID.
            9 => 16,
            _ => return None,
        };
        let value = take(&mut bytes, length)?;
        if kind == TEXT {
            headers.push((name, str::from_utf8(value).ok()?));
        }
    }
    Some(headers)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Writes a message. Names are shorter than 256 bytes, values than 64 KiB.
pub fn encode_event_stream_message(headers: &[(&str, &str)], payload: &[u8], out: &mut Vec<u8>) {
    let text_length = |text: &str| u16::try_from(text.len()).unwrap_or(u16::MAX);
    let start = out.len();
    let headers_length: usize = headers
        .iter()
        .map(|(name, value)| 1 + name.len() + 3 + value.len())
        .sum();
    let total = PRELUDE + headers_length + payload.len() + CHECKSUM;
    out.extend_from_slice(&(total as u32).to_be_bytes());
    out.extend_from_slice(&(headers_length as u32).to_be_bytes());
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
    for (name, value) in headers {
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        out.push(TEXT);
        out.extend_from_slice(&text_length(value).to_be_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(payload);
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests;

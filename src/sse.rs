//! Server-sent events: splits a stream into frames, and writes events.
//!
//! A frame keeps the offset of its payload, which parsers of events do not tell: passthrough changes a value
//! inside of an event and leaves every other byte as it was.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use serde::Serialize;

use crate::json::write_json;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event as it stands on the wire, up to and including the blank line that ends it.
#[derive(Debug, PartialEq, Eq)]
pub struct SseFrame<'a> {
    pub raw: &'a [u8],
    /// Empty when the event has no name.
    pub name: Cow<'a, str>,
    /// `None`: comments or blank lines only, nothing that counts as an event.
    pub data: Option<Cow<'a, str>>,
    /// Where `data` begins in `raw`; known when it is one line of valid text.
    pub data_at: Option<usize>,
}

impl SseFrame<'_> {
    /// Tells whether the frame is nothing but `data: `, the payload on one line, and a blank line.
    pub fn is_plain(&self) -> bool {
        const PREFIX: &[u8] = b"data: ";
        let Some(data) = self.data.as_ref() else {
            return false;
        };
        let end = self
            .raw
            .get(PREFIX.len() + data.len()..)
            .unwrap_or_default();
        self.data_at == Some(PREFIX.len())
            && self.raw.starts_with(PREFIX)
            // The last line feed may come with the next chunk.
            && matches!(end, b"\n\n" | b"\r\n\r\n" | b"\r\n\r" | b"\r\r")
    }
}

/// Splits a byte stream into frames, wherever its chunks end. Bytes are copied only where a chunk ends inside of a frame.
#[derive(Debug, Default)]
pub struct SseFrames {
    buffer: Vec<u8>,
    /// How far `buffer` was searched, and where the line being searched begins.
    searched: usize,
    line: usize,
    started: bool,
}

impl SseFrames {
    /// The number of bytes of a frame that is not complete yet.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    pub fn push(&mut self, chunk: &[u8], mut each: impl FnMut(SseFrame<'_>)) {
        if self.buffer.is_empty() {
            let rest = self.cut(chunk, &mut each);
            self.buffer.extend_from_slice(&chunk[rest..]);
        } else {
            self.buffer.extend_from_slice(chunk);
            let mut buffer = std::mem::take(&mut self.buffer);
            let rest = self.cut(&buffer, &mut each);
            buffer.drain(..rest);
            self.buffer = buffer;
        }
    }

    /// Ends the stream; an incomplete frame is handed over as it is.
    pub fn finish(&mut self, mut each: impl FnMut(SseFrame<'_>)) {
        let buffer = std::mem::take(&mut self.buffer);
        (self.searched, self.line) = (0, 0);
        if !buffer.is_empty() {
            let first = !std::mem::replace(&mut self.started, true);
            each(parse_frame(&buffer, first));
        }
    }

    /// Hands over the complete frames of `bytes`; returns the offset of the incomplete one.
    fn cut(&mut self, bytes: &[u8], each: &mut impl FnMut(SseFrame<'_>)) -> usize {
        let (mut frame, mut line, mut at) = (0, self.line, self.searched);
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &bytes[at..]) {
            let end = at + found;
            let blank = line == end || (!self.started && bytes[line..end] == *BYTE_ORDER_MARK);
            let next = match bytes[end..] {
                [b'\r', b'\n', ..] => end + 2,
                // A line feed may follow; a frame that is complete must not wait for it.
                [b'\r'] if !blank => break,
                _ => end + 1,
            };
            if blank {
                let first = !std::mem::replace(&mut self.started, true);
                each(parse_frame(&bytes[frame..next], first));
                frame = next;
            }
            (line, at) = (next, next);
        }
        let tail_carriage_return = bytes.last() == Some(&b'\r') && line < bytes.len();
        at = bytes.len() - usize::from(tail_carriage_return);
        (self.searched, self.line) = (at.max(line) - frame, line - frame);
        frame
    }
}

fn parse_frame(raw: &[u8], first: bool) -> SseFrame<'_> {
    let mut frame = SseFrame {
        raw,
        name: Cow::Borrowed(""),
        data: None,
        data_at: None,
    };
    let mut at = if first && raw.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    };
    while at < raw.len() {
        let end = memchr::memchr2(b'\n', b'\r', &raw[at..]).map_or(raw.len(), |found| at + found);
        parse_line(&mut frame, &raw[at..end], at);
        at = match raw[end..] {
            [b'\r', b'\n', ..] => end + 2,
            _ => end + 1,
        };
    }
    frame
}

fn parse_line<'a>(frame: &mut SseFrame<'a>, line: &'a [u8], at: usize) {
    let colon = memchr::memchr(b':', line);
    let (field, mut value_at) = match colon {
        Some(colon) => (&line[..colon], colon + 1),
        None => (line, line.len()),
    };
    if line.get(value_at) == Some(&b' ') {
        value_at += 1;
    }
    let value = text_of(&line[value_at..]);
    match field {
        b"event" => frame.name = value,
        b"data" => {
            frame.data_at = match (&frame.data, &value) {
                (None, Cow::Borrowed(_)) => Some(at + value_at),
                _ => None,
            };
            frame.data = Some(match frame.data.take() {
                None => value,
                // Appended to, since an event may have many lines.
                Some(before) => {
                    let mut lines = before.into_owned();
                    lines.push('\n');
                    lines.push_str(&value);
                    Cow::Owned(lines)
                }
            });
        }
        _ => {}
    }
}

/// Decodes UTF-8, which is nearly always valid; the check is faster than the lossy conversion.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Further line ends of Unicode, which JSON does not escape but some clients split lines at.
const MORE_LINE_ENDS: [(char, &str); 3] = [
    ('\u{85}', "\\u0085"),
    ('\u{2028}', "\\u2028"),
    ('\u{2029}', "\\u2029"),
];

/// Writes server-sent events into a buffer.
#[derive(Debug, Default)]
pub struct SseWriter {
    out: BytesMut,
    /// The buffer of one payload: many small writes are faster here.
    payload: Vec<u8>,
}

impl SseWriter {
    /// Writes a comment, which clients ignore.
    pub fn comment(&mut self, words: &str) {
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(words.as_bytes());
        self.out.extend_from_slice(b"\n\n");
    }

    /// Writes an event without a name.
    pub fn data(&mut self, payload: &impl Serialize) {
        self.out.extend_from_slice(b"data: ");
        self.payload(payload);
    }

    pub fn event(&mut self, name: &str, payload: &impl Serialize) {
        self.out.extend_from_slice(b"event: ");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\ndata: ");
        self.payload(payload);
    }

    /// Writes an event without a name whose payload merges two objects. The first is JSON already: what every
    /// event of a stream repeats.
    pub fn joined(&mut self, repeated: &[u8], payload: &impl Serialize) {
        self.out.extend_from_slice(b"data: ");
        self.join(repeated, payload);
        self.out.extend_from_slice(b"\n\n");
    }

    /// Writes an event whose payload is a bare word such as `[DONE]`.
    pub fn word(&mut self, word: &str) {
        self.out.extend_from_slice(b"data: ");
        self.out.extend_from_slice(word.as_bytes());
        self.out.extend_from_slice(b"\n\n");
    }

    /// Writes bytes that are framed already.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The bytes written since they were last taken.
    pub fn length(&self) -> usize {
        self.out.len()
    }

    /// Takes what was written since the last call.
    pub fn take(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    fn payload(&mut self, payload: &impl Serialize) {
        self.json(payload);
        self.out.extend_from_slice(b"\n\n");
    }

    /// Writes a payload alone, on one line also for clients that know more line ends.
    pub fn json(&mut self, payload: &impl Serialize) {
        self.payload.clear();
        self.serialise(payload);
        self.write();
    }

    /// Writes the merged payload of two objects; neither is empty.
    pub fn join(&mut self, repeated: &[u8], payload: &impl Serialize) {
        self.payload.clear();
        let end = repeated.len().saturating_sub(1);
        self.payload.extend_from_slice(&repeated[..end]);
        self.serialise(payload);
        // Its opening bracket.
        self.payload[end] = b',';
        self.write();
    }

    fn serialise(&mut self, payload: &impl Serialize) {
        write_json(payload, &mut self.payload)
            .expect("our own structs with string keys always serialise, and memory does not fail");
    }

    fn write(&mut self) {
        // The first bytes of these characters.
        if memchr::memchr2(0xc2, 0xe2, &self.payload).is_some() {
            escape_line_ends(&mut self.payload);
        }
        self.out.extend_from_slice(&self.payload);
    }
}

fn escape_line_ends(json: &mut Vec<u8>) {
    let mut text = String::from_utf8_lossy(json);
    for (end, escape) in MORE_LINE_ENDS {
        if text.contains(end) {
            text = text.replace(end, escape).into();
        }
    }
    if let Cow::Owned(escaped) = text {
        *json = escaped.into_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Seen = Vec<(Vec<u8>, String, Option<String>)>;

    fn frames(pieces: &[&[u8]]) -> Seen {
        let mut frames = SseFrames::default();
        let mut seen = Seen::new();
        let mut note = |frame: SseFrame<'_>| {
            if let (Some(at), Some(data)) = (frame.data_at, &frame.data) {
                assert_eq!(&frame.raw[at..at + data.len()], data.as_bytes());
            }
            let data = frame.data.map(Cow::into_owned);
            seen.push((frame.raw.to_vec(), frame.name.into_owned(), data));
        };
        for piece in pieces {
            frames.push(piece, &mut note);
        }
        frames.finish(&mut note);
        seen
    }

    #[test]
    fn every_framing_gives_the_same_events_wherever_it_is_cut() {
        let text = "\u{feff}: hello\nevent: a\ndata: {\"x\":1}\n\ndata:two\ndata: lines\n\n\n\ndata\n\nid: 7\n\n";
        for line_end in ["\n", "\r\n", "\r"] {
            let bytes = text.replace('\n', line_end).into_bytes();
            let whole: Vec<_> = frames(&[&bytes])
                .into_iter()
                .filter_map(|(_, name, data)| Some((name, data?)))
                .collect();
            let expected = [("a", "{\"x\":1}"), ("", "two\nlines"), ("", "")];
            assert_eq!(
                whole,
                expected.map(|(name, data)| (name.to_owned(), data.to_owned()))
            );
            for cut in 0..bytes.len() {
                let parts = frames(&[&bytes[..cut], &bytes[cut..]]);
                let raw: Vec<u8> = parts.iter().flat_map(|part| part.0.clone()).collect();
                assert_eq!(raw, bytes, "no byte may be lost");
                let events: Vec<_> = parts
                    .into_iter()
                    .filter_map(|(_, name, data)| Some((name, data?)))
                    .collect();
                assert_eq!(events, whole, "cut at {cut} with {line_end:?}");
            }
        }
    }

    #[test]
    fn a_complete_frame_does_not_wait_for_a_line_feed_that_may_follow() {
        let mut seen = 0;
        SseFrames::default().push(b"data: x\r\n\r", |frame| {
            seen += usize::from(frame.data.is_some());
        });
        assert_eq!(seen, 1);
    }

    #[test]
    fn a_plain_frame_is_a_payload_and_nothing_else() {
        let is_plain = |bytes: &str| {
            let (mut frames, mut plain) = (SseFrames::default(), Vec::new());
            frames.push(bytes.as_bytes(), |frame| plain.push(frame.is_plain()));
            frames.finish(|frame| plain.push(frame.is_plain()));
            plain
        };
        for plain in ["data: {}\n\n", "data: {}\r\n\r\n", "data: {}\r\r"] {
            assert_eq!(is_plain(plain), [true], "{plain:?}");
        }
        for other in [
            "data:{}\n\n",
            "\u{feff}data: {}\n\n",
            ": a\ndata: {}\n\n",
            "data: {}\n: a\n\n",
            "event: a\ndata: {}\n\n",
            "data: {}\nid: 1\n\n",
            "data: {\ndata: }\n\n",
            "data: {}\r\n\n",
            "data: {}",
            "data: {}\n",
            ": a\n\n",
        ] {
            assert_eq!(is_plain(other), [false], "{other:?}");
        }
    }

    #[test]
    fn the_writer_frames_events() {
        let mut writer = SseWriter::default();
        writer.event("ping", &serde_json::json!({"type": "ping"}));
        writer.data(&serde_json::json!({}));
        writer.joined(br#"{"a":1}"#, &serde_json::json!({"b": 2}));
        writer.word("[DONE]");
        assert_eq!(
            writer.take().as_ref(),
            b"event: ping\ndata: {\"type\":\"ping\"}\n\ndata: {}\n\n\
              data: {\"a\":1,\"b\":2}\n\ndata: [DONE]\n\n"
        );
        assert!(writer.is_empty());
    }

    #[test]
    fn a_payload_is_one_line_for_every_reader() {
        for (text, written) in [
            ("a\u{2028}b\u{85}\u{2029}", r#""a\u2028b\u0085\u2029""#),
            ("é…“”\u{a0}\u{2027}", "\"é…“”\u{a0}\u{2027}\""),
            ("\r\n", r#""\r\n""#),
        ] {
            let mut writer = SseWriter::default();
            writer.data(&text);
            assert_eq!(
                String::from_utf8_lossy(&writer.take()),
                format!("data: {written}\n\n")
            );
        }
    }
}

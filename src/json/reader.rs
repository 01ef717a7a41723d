//! A pull parser for JSON: each value goes straight into its field.
//!
//! Used for what is decoded with every event of a stream: a derived deserializer takes several times as
//! long, because it moves each value several times.

use std::borrow::Cow;
use std::fmt;

use super::plain_bytes::plain;

/// Maximum nesting, the same as serde_json's.
const MAX_DEPTH: u8 = 127;

/// The nesting that a request must leave: an upstream may repeat parts of it in a response, deeper than they stood.
const ECHO_DEPTH: u8 = 8;

/// Length of the shortest escape; the hex digits of a longer one are plain bytes.
const ESCAPE: usize = 2;

/// Initial capacity of a text with escapes.
const UNESCAPED_CAPACITY: usize = 128;

#[derive(Clone)]
pub struct JsonReader<'a> {
    pub(super) text: &'a str,
    at: usize,
    depth: u8,
    /// The bytes that the items of all arrays take that were decoded so far.
    pub(super) items: usize,
    expected: &'static str,
}

/// Decoding has stopped; the reader knows where, and what it expected there.
#[derive(Debug)]
pub struct DecodeStopped;

/// Why a text could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonError {
    expected: &'static str,
    line: usize,
    column: usize,
}

impl JsonError {
    pub(super) const fn expected(&self) -> &'static str {
        self.expected
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JsonError {
            expected,
            line,
            column,
        } = self;
        write!(out, "expected {expected} at line {line} column {column}")
    }
}

pub type DecodeResult<T = ()> = Result<T, DecodeStopped>;

impl<'a> JsonReader<'a> {
    pub const fn new(text: &'a str) -> JsonReader<'a> {
        JsonReader {
            text,
            at: 0,
            depth: 0,
            items: 0,
            expected: "JSON",
        }
    }

    /// Reads the body of a request.
    pub const fn of_request(text: &'a str) -> JsonReader<'a> {
        JsonReader {
            depth: ECHO_DEPTH,
            ..JsonReader::new(text)
        }
    }

    /// Checks that nothing but white space follows.
    pub fn end(&mut self) -> DecodeResult {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.stop("the end")),
        }
    }

    /// The error for where the reader has stopped.
    #[cold]
    pub fn problem(&self) -> JsonError {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        JsonError {
            expected: self.expected,
            line: 1 + memchr::memchr_iter(b'\n', before).count(),
            column: 1 + before.len() - line_start,
        }
    }

    #[cold]
    pub fn stop(&mut self, expected: &'static str) -> DecodeStopped {
        self.expected = expected;
        DecodeStopped
    }

    /// Tells whether the reader has stopped because it expected this.
    pub(super) fn is_stopped_for(&self, expected: &'static str) -> bool {
        self.expected == expected
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The first byte of the next token.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other,
            }
        }
    }

    #[inline]
    fn take(&mut self, byte: u8, name: &'static str) -> DecodeResult {
        if self.peek() != Some(byte) {
            return Err(self.stop(name));
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn enter(&mut self, bracket: u8, name: &'static str) -> DecodeResult {
        self.take(bracket, name)?;
        if self.depth == MAX_DEPTH {
            return Err(self.stop("less nesting"));
        }
        self.depth += 1;
        Ok(())
    }

    /// Tells whether the list or object ends here; `first`: no item was read yet.
    #[inline]
    fn leaves(&mut self, bracket: u8, first: bool, name: &'static str) -> DecodeResult<bool> {
        match self.peek() {
            Some(byte) if byte == bracket => {
                self.at += 1;
                self.depth -= 1;
                Ok(true)
            }
            _ if first => Ok(false),
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.stop(name)),
        }
    }

    /// Decodes an object; `field` is called with each key and decodes the value.
    #[inline]
    pub fn object(
        &mut self,
        mut field: impl FnMut(&mut JsonReader<'a>, &str) -> DecodeResult,
    ) -> DecodeResult {
        self.entries(|reader, key| field(reader, &key))
    }

    /// Decodes an object; the key may be kept.
    #[inline]
    pub(super) fn entries(
        &mut self,
        mut entry: impl FnMut(&mut JsonReader<'a>, Cow<'a, str>) -> DecodeResult,
    ) -> DecodeResult {
        self.enter(b'{', "an object")?;
        let mut first = true;
        while !self.leaves(b'}', first, "a comma or the end of the object")? {
            first = false;
            let key = self.string("a key")?;
            self.take(b':', "a colon")?;
            entry(self, key)?;
        }
        Ok(())
    }

    /// Decodes the elements of an array that has lost its brackets.
    pub fn elements(
        &mut self,
        mut item: impl FnMut(&mut JsonReader<'a>) -> DecodeResult,
    ) -> DecodeResult {
        let mut first = true;
        while self.peek().is_some() {
            if !std::mem::replace(&mut first, false) {
                self.take(b',', "a comma")?;
            }
            item(self)?;
        }
        Ok(())
    }

    /// Decodes an array; `item` decodes each element.
    #[inline]
    pub fn array(
        &mut self,
        mut item: impl FnMut(&mut JsonReader<'a>) -> DecodeResult,
    ) -> DecodeResult {
        self.enter(b'[', "an array")?;
        let mut first = true;
        while !self.leaves(b']', first, "a comma or the end of the array")? {
            first = false;
            item(self)?;
        }
        Ok(())
    }

    #[inline]
    pub fn text(&mut self) -> DecodeResult<Cow<'a, str>> {
        self.string("a string")
    }

    #[inline]
    fn string(&mut self, name: &'static str) -> DecodeResult<Cow<'a, str>> {
        self.take(b'"', name)?;
        let start = self.at;
        self.at += plain(&self.text.as_bytes()[start..]);
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        self.unescaped(start)
    }

    /// Decodes the rest of a string from its first escape on.
    #[inline(never)]
    fn unescaped(&mut self, mut start: usize) -> DecodeResult<Cow<'a, str>> {
        // The next quote ends the text or is escaped: the text is at least that long.
        let rest = &self.text.as_bytes()[start..];
        let sure = memchr::memchr(b'"', rest).unwrap_or(0);
        let mut text = String::with_capacity(sure.max(rest.len().min(UNESCAPED_CAPACITY)));
        loop {
            text.push_str(&self.text[start..self.at]);
            if self.ends_string()? {
                return Ok(Cow::Owned(text));
            }
            let Some((character, length)) = unescape(&self.text[self.at + 1..]) else {
                return Err(self.stop("a whole character"));
            };
            text.push(character);
            self.at += 1 + length;
            start = self.at;
            self.at += plain(&self.text.as_bytes()[start..]);
        }
    }

    /// Skips to behind the closing quote.
    fn rest_of_string(&mut self) -> DecodeResult {
        loop {
            self.at += plain(&self.text.as_bytes()[self.at..]);
            if self.ends_string()? {
                return Ok(());
            }
            self.at += ESCAPE;
        }
    }

    /// Tells whether the closing quote comes next, and skips it; else an escape comes next.
    #[inline]
    fn ends_string(&mut self) -> DecodeResult<bool> {
        let expected = match self.text.as_bytes()[self.at..] {
            [b'"', ..] => {
                self.at += 1;
                return Ok(true);
            }
            [
                b'\\',
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
                ..,
            ] => {
                return Ok(false);
            }
            [b'\\', b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(u8::is_ascii_hexdigit) => {
                return Ok(false);
            }
            [b'\\', ..] => "an escape",
            [_, ..] => "an escape for a control character",
            [] => "the end of the string",
        };
        Err(self.stop(expected))
    }

    /// Tells whether `null` comes next, and skips it.
    #[inline]
    pub fn null(&mut self) -> DecodeResult<bool> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    pub fn flag(&mut self) -> DecodeResult<bool> {
        match self.peek() {
            Some(b't') => self.word("true").map(|()| true),
            Some(b'f') => self.word("false").map(|()| false),
            _ => Err(self.stop("true or false")),
        }
    }

    fn word(&mut self, word: &'static str) -> DecodeResult {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.stop("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// A number as its source text.
    pub fn number(&mut self) -> DecodeResult<&'a str> {
        let start = match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.at,
            _ => return Err(self.stop("a number")),
        };
        self.skip_if(b"-");
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.skip_if(b".") {
            self.digits()?;
        }
        if self.skip_if(b"eE") {
            self.skip_if(b"+-");
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn skip_if(&mut self, any: &[u8]) -> bool {
        let is_there = self.byte().is_some_and(|byte| any.contains(&byte));
        self.at += usize::from(is_there);
        is_there
    }

    fn digits(&mut self) -> DecodeResult {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.stop("a digit"));
        }
        Ok(())
    }

    /// Skips any value.
    pub fn skip(&mut self) -> DecodeResult {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.rest_of_string()
            }
            Some(b'{') => self.object(|reader, _| reader.skip()),
            Some(b'[') => self.array(JsonReader::skip),
            Some(b'n') => self.word("null"),
            Some(b't' | b'f') => self.flag().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            _ => Err(self.stop("a value")),
        }
    }

    /// Any value as its source text.
    #[inline]
    pub fn raw(&mut self) -> DecodeResult<&'a str> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }
}

/// The character of an escape, and its length behind the backslash. `None`: an unpaired surrogate.
fn unescape(escape: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u16::from_str_radix(escape.get(at..at + 4)?, 16).ok();
    Some(match *escape.as_bytes().first()? {
        b'n' => ('\n', 1),
        b'r' => ('\r', 1),
        b't' => ('\t', 1),
        b'b' => ('\u{8}', 1),
        b'f' => ('\u{c}', 1),
        b'u' => match (unit(1)?, escape.get(5..7)) {
            (half @ 0xd800..0xe000, Some("\\u")) => {
                let both = char::decode_utf16([half, unit(7)?]).next()?;
                (both.ok()?, 11)
            }
            (unit, _) => (char::from_u32(unit.into())?, 5),
        },
        same => (char::from(same), 1),
    })
}

#[cfg(test)]
#[path = "tests/reader.rs"]
mod tests;

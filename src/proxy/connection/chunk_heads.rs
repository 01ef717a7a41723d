//! Checks the heads of the chunks of a request body. pingora's parser takes any byte for a part of an extension, and a head without
//! a size for the last one; another proxy may read such a body differently, and find another request in it.

use memchr::memchr;

/// No size has more digits.
const MAX_DIGITS: u8 = 16;

/// Where in a body in chunks the bytes end that have come.
#[derive(Debug, Default)]
pub(super) struct ChunkHeads {
    part: ChunkPart,
    size: u64,
    digits: u8,
    /// Whether bytes have come that do not belong to the body any more.
    has_more: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ChunkPart {
    #[default]
    Size,
    /// Blanks after the size.
    Blank,
    Extension,
    /// The carriage return at the end of a head has come.
    Return,
    /// So much is left of the chunk, its line end counted.
    Data(u64),
    TrailerStart,
    Trailer,
    /// The carriage return of the last line has come.
    LastReturn,
    End,
    Invalid,
}

impl ChunkHeads {
    /// Looks at the heads among further bytes, and at nothing else of them; `false`: one was wrong.
    pub(super) fn check(&mut self, bytes: &[u8]) -> bool {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let left = &bytes[at..];
            match self.part {
                ChunkPart::Data(rest) => {
                    let taken = rest.min(left.len() as u64);
                    self.part = match rest - taken {
                        0 => ChunkPart::Size,
                        rest => ChunkPart::Data(rest),
                    };
                    at += taken as usize;
                    continue;
                }
                ChunkPart::Trailer => {
                    let Some(end) = memchr(b'\n', left) else {
                        break;
                    };
                    self.part = ChunkPart::TrailerStart;
                    at += end;
                }
                ChunkPart::End => {
                    self.has_more = true;
                    break;
                }
                ChunkPart::Invalid => break,
                _ => self.part = self.next(*byte),
            }
            at += 1;
        }
        self.is_valid()
    }

    pub(super) fn is_valid(&self) -> bool {
        self.part != ChunkPart::Invalid
    }

    /// Tells whether the body is complete, and nothing has come behind it.
    pub(super) fn has_ended(&self) -> bool {
        self.part == ChunkPart::End && !self.has_more
    }

    /// What follows after a byte of a head, or of the end of the body.
    fn next(&mut self, byte: u8) -> ChunkPart {
        let has_size = self.digits > 0;
        match (self.part, byte) {
            (ChunkPart::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.add_digit(byte),
            (ChunkPart::Size, b' ' | b'\t') if has_size => ChunkPart::Blank,
            (ChunkPart::Blank, b' ' | b'\t') => ChunkPart::Blank,
            (ChunkPart::Size, b';') if has_size => ChunkPart::Extension,
            (ChunkPart::Blank, b';') => ChunkPart::Extension,
            (ChunkPart::Size, b'\r') if has_size => ChunkPart::Return,
            (ChunkPart::Blank | ChunkPart::Extension, b'\r') => ChunkPart::Return,
            (ChunkPart::Extension, b'\t' | b' '..=b'~' | 0x80..) => ChunkPart::Extension,
            (ChunkPart::Return, b'\n') => self.end_head(),
            (ChunkPart::TrailerStart, b'\r') => ChunkPart::LastReturn,
            (ChunkPart::TrailerStart, _) => ChunkPart::Trailer,
            (ChunkPart::LastReturn, b'\n') => ChunkPart::End,
            _ => ChunkPart::Invalid,
        }
    }

    fn add_digit(&mut self, digit: u8) -> ChunkPart {
        let value = char::from(digit).to_digit(16).unwrap_or_default();
        self.size = self.size << 4 | u64::from(value);
        self.digits += 1;
        match self.digits > MAX_DIGITS {
            true => ChunkPart::Invalid,
            false => ChunkPart::Size,
        }
    }

    fn end_head(&mut self) -> ChunkPart {
        let size = std::mem::take(&mut self.size);
        self.digits = 0;
        match size {
            0 => ChunkPart::TrailerStart,
            size => size
                .checked_add(2)
                .map_or(ChunkPart::Invalid, ChunkPart::Data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a body at once, and byte by byte.
    fn is_valid(body: &str) -> bool {
        let mut in_bytes = ChunkHeads::default();
        for byte in body.as_bytes() {
            in_bytes.check(&[*byte]);
        }
        let mut at_once = ChunkHeads::default();
        let is_valid = at_once.check(body.as_bytes());
        assert_eq!(is_valid, in_bytes.is_valid(), "{body:?}");
        assert_eq!(at_once.has_ended(), in_bytes.has_ended(), "{body:?}");
        is_valid
    }

    #[test]
    fn a_head_has_a_size_and_no_control_characters() {
        for body in [
            "0\r\n\r\n",
            "1\r\n;\r\n0\r\n\r\n",
            "000a\r\n0123456789\r\n0\r\n\r\n",
            "B;a=\"b\";c=\té\r\n0123456789a\r\n0;last\r\n\r\n",
            "2 \t;a\r\nab\r\n0 \r\n\r\n",
            "2\r\n\n\r\r\n0\r\nx: y\r\nz: a\r\n\r\n",
            "ffffffffffffffff",
        ] {
            assert!(is_valid(body), "{body:?}");
        }
        for body in [
            "\r\n",
            ";a\r\n",
            " 1\r\na\r\n",
            "1;\nyy\r\na\r\n",
            "0;\nGET / HTTP/1.1\r\n\r\n",
            "1;a\0\r\na\r\n",
            "1;a\u{7f}\r\na\r\n",
            "1\na\n",
            "1\r\ra\r\n",
            "1 1\r\na\r\n",
            "0x1\r\na\r\n",
            "1\r\na\r\n\r\n",
            "00000000000000001\r\na",
            "fffffffffffffffe\r\n",
            "{}",
        ] {
            assert!(!is_valid(body), "{body:?}");
        }
    }

    #[test]
    fn what_follows_the_body_is_seen() {
        for (body, has_ended) in [
            ("0\r\n\r\n", true),
            ("1\r\na\r\n0\r\na: b\r\n\r\n", true),
            ("1\r\na\r\n0\r\na: b\r\n\r", false),
            ("0\r\n\r\n\r", false),
            ("1\r\na\r\n0\r\na: b\r\n\r\nG", false),
        ] {
            let mut heads = ChunkHeads::default();
            assert!(heads.check(body.as_bytes()), "{body:?}");
            assert_eq!(heads.has_ended(), has_ended, "{body:?}");
        }
    }
}

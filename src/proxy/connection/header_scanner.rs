//! Finds the end of a request header of HTTP/1, and looks at each byte of it once, however many reads it comes in.

use memchr::memchr;

/// Where in a header the bytes end that have come.
#[derive(Debug, Default)]
pub(super) struct HeaderScanner {
    /// Some line has come that is not empty: empty ones may stand before the first.
    has_begun: bool,
    line: LinePart,
    /// Whether the first line is complete.
    has_first_line: bool,
}

/// What has come of the line that has not ended.
#[derive(Debug, Default, Clone, Copy)]
enum LinePart {
    #[default]
    Nothing,
    /// A carriage return alone.
    Return,
    Text,
}

impl HeaderScanner {
    /// Looks at further bytes; returns how many of them belong to the header, if it ends among them. As pingora's parser does,
    /// it takes a line feed alone for the end of a line, so that such a header is refused and not waited for.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match (self.line, byte) {
                (LinePart::Text, _) => {
                    at += memchr(b'\n', &bytes[at..])?;
                    self.has_first_line = true;
                    self.line = LinePart::Nothing;
                }
                (_, b'\n') if self.has_begun => return Some(at + 1),
                (_, b'\n') => self.line = LinePart::Nothing,
                (LinePart::Nothing, b'\r') => self.line = LinePart::Return,
                _ => {
                    self.has_begun = true;
                    self.line = LinePart::Text;
                }
            }
            at += 1;
        }
        None
    }

    pub(super) const fn has_first_line(&self) -> bool {
        self.has_first_line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_wherever_the_bytes_are_cut() {
        for (header, body) in [
            ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", ""),
            ("GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"),
            ("\r\n\n\r\nPOST / HTTP/1.1\r\na: b\r\n\r\n", "\n\n"),
            ("GET / HTTP/1.1\na: b\n\n", "{}"),
            ("GET / HTTP/1.1\r\na: b\r\n\n", "\r\n"),
            ("GET / HTTP/1.1\r\n \r\n\r\r\n\r\n", "x"),
        ] {
            let all = [header, body].concat();
            for first in 0..=header.len() {
                for second in first..=header.len() {
                    let mut scanner = HeaderScanner::default();
                    let mut end = None;
                    for (from, to) in [(0, first), (first, second), (second, all.len())] {
                        let found = scanner.scan(&all.as_bytes()[from..to]);
                        end = end.or_else(|| Some(from + found?));
                        if end.is_some() {
                            break;
                        }
                    }
                    assert_eq!(end, Some(header.len()), "{all:?} {first} {second}");
                }
            }
        }
        for open in ["", "\r\n\r\n", "GET / HTTP/1.1\r\n", "a\r\nb\r\n\r"] {
            assert_eq!(HeaderScanner::default().scan(open.as_bytes()), None);
        }
    }
}

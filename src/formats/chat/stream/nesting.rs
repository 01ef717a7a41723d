//! Detects where JSON that arrives in chunks is complete.

/// The depth of one JSON value, followed from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    is_complete: bool,
}

impl Nesting {
    /// Follows the value through one more chunk of its text.
    pub(super) fn push(&mut self, chunk: &str) {
        for byte in chunk.bytes() {
            match (byte, self.in_string) {
                _ if self.is_escaped => self.is_escaped = false,
                (b'\\', true) => self.is_escaped = true,
                (b'"', _) => self.in_string = !self.in_string,
                (b'{' | b'[', false) => self.depth += 1,
                (b'}' | b']', false) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete |= self.depth == 0;
                }
                _ => {}
            }
        }
    }

    /// Whether an object or an array has been closed; other values are never known to be complete.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_complete_when_its_last_bracket_closes() {
        for (chunks, complete) in [
            (&["{\"a\":", "\"}\\\"", "}\"", "}"][..], true),
            (&["{\"a\":", "\"}\\\"", "}\""], false),
            (&["{}"], true),
            (&["", " "], false),
            (&["[{", "}", "]"], true),
            (&["[{", "}"], false),
        ] {
            let mut nesting = Nesting::default();
            for chunk in chunks {
                nesting.push(chunk);
            }
            assert_eq!(nesting.is_complete(), complete, "{chunks:?}");
        }
    }
}

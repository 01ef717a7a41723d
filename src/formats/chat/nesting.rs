//! Whether JSON that arrives in pieces is complete.

/// Follows one value from piece to piece.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    is_complete: bool,
}

impl Nesting {
    pub(super) fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
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

    /// An object or a list has been closed; bare values are never known to be complete.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_complete_where_its_last_bracket_closes() {
        for (pieces, complete) in [
            (&["{\"a\":", "\"}\\\"", "}\"", "}"][..], true),
            (&["{\"a\":", "\"}\\\"", "}\""], false),
            (&["{}"], true),
            (&["", " "], false),
            (&["[{", "}", "]"], true),
            (&["[{", "}"], false),
        ] {
            let mut nesting = Nesting::default();
            for piece in pieces {
                nesting.push(piece);
            }
            assert_eq!(nesting.is_complete(), complete, "{pieces:?}");
        }
    }
}

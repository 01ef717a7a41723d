//! The elements of a JSON array that arrives in pieces, each handed over as soon as it is complete.

/// Finds element borders without building a tree; it trusts nothing but quotes and brackets,
/// so an element must still be parsed by whoever receives it.
#[derive(Debug, Default)]
pub struct ArrayElements {
    held: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl ArrayElements {
    /// Whether the array's closing bracket has come.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Each element comes with the place in the chunk where it ends. What follows the array's
    /// closing bracket is none.
    pub fn push(&mut self, chunk: &[u8], mut element: impl FnMut(&[u8], usize)) {
        for (at, &byte) in chunk.iter().enumerate() {
            if self.closed {
                return;
            }
            let inside = self.depth >= 2;
            self.step(byte);
            if inside || self.depth >= 2 {
                self.held.push(byte);
            }
            if inside && self.depth == 1 {
                element(&self.held, at + 1);
                self.held.clear();
            }
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.closed |= self.depth == 0;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ArrayElements;

    #[test]
    fn any_cut_gives_the_same_elements() {
        let text = br#"[{"a":"}]\"","b":[1,{"c":2}]}
,
{"d":"\\"}]"#;
        for cut in 0..text.len() {
            let mut elements = ArrayElements::default();
            let mut seen = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                elements.push(piece, |element, end| {
                    assert_eq!(element.last(), Some(&piece[end - 1]));
                    seen.push(element.to_vec());
                });
            }
            assert_eq!(
                seen,
                [
                    br#"{"a":"}]\"","b":[1,{"c":2}]}"#.to_vec(),
                    br#"{"d":"\\"}"#.to_vec()
                ]
            );
            assert!(elements.closed());
        }
    }

    #[test]
    fn nothing_follows_the_end() {
        for pieces in [&["[{}] [[1]]"][..], &["[{}]", " [[1]]"]] {
            let (mut elements, mut seen) = (ArrayElements::default(), 0);
            for piece in pieces {
                elements.push(piece.as_bytes(), |_, _| seen += 1);
            }
            assert_eq!((seen, elements.closed()), (1, true));
        }
    }
}

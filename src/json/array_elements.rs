//! Splits a JSON array that arrives in chunks into its elements, each as soon as it is complete.

/// Finds the ends of elements by quotes and brackets alone; the receiver still has to parse an element.
#[derive(Debug, Default)]
pub struct ArrayElements {
    buffer: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl ArrayElements {
    /// Tells whether the closing bracket of the array has come.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// How many bytes wait for the end of their element.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Calls `element` with each complete element and the offset in the chunk where it ends. Returns the offset behind the
    /// array or, as long as it is open, behind the chunk: bytes behind the array are ignored.
    pub fn push(&mut self, chunk: &[u8], mut element: impl FnMut(&[u8], usize)) -> usize {
        for (at, &byte) in chunk.iter().enumerate() {
            if self.closed {
                return at;
            }
            let inside = self.depth >= 2;
            self.step(byte);
            if inside || self.depth >= 2 {
                self.buffer.push(byte);
            }
            if inside && self.depth == 1 {
                element(&self.buffer, at + 1);
                self.buffer.clear();
            }
        }
        chunk.len()
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
            for chunk in [&text[..cut], &text[cut..]] {
                elements.push(chunk, |element, end| {
                    assert_eq!(element.last(), Some(&chunk[end - 1]));
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
        for chunks in [&["[{}] [[1]]"][..], &["[{}]", " [[1]]"]] {
            let (mut elements, mut seen) = (ArrayElements::default(), 0);
            for chunk in chunks {
                elements.push(chunk.as_bytes(), |_, _| seen += 1);
            }
            assert_eq!((seen, elements.closed()), (1, true));
        }
    }
}

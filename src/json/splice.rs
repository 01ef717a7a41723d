//! Replacing values in raw JSON bytes, so that everything around them stays as it was written.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// What stands at `range` gives way to `with`; an empty range inserts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub range: Range<usize>,
    pub with: Vec<u8>,
}

/// `body` with the edits made; they must be in order and must not overlap.
pub fn replace(body: &[u8], edits: &[Edit]) -> Bytes {
    let grown: usize = edits.iter().map(|edit| edit.with.len()).sum();
    let mut out = BytesMut::with_capacity(body.len() + grown);
    let mut from = 0;
    for edit in edits {
        out.extend_from_slice(&body[from..edit.range.start]);
        out.extend_from_slice(&edit.with);
        from = edit.range.end;
    }
    out.extend_from_slice(&body[from..]);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ranges_change() {
        let body = br#"{ "a" : 1.50, "model":"old" , "b":[ ] }"#;
        let range = 22..27;
        assert_eq!(&body[range.clone()], br#""old""#);
        let edits = [
            Edit {
                range: 1..1,
                with: b" \"first\":0,".to_vec(),
            },
            Edit {
                range,
                with: b"\"newer\"".to_vec(),
            },
        ];
        assert_eq!(
            replace(body, &edits).as_ref(),
            br#"{ "first":0, "a" : 1.50, "model":"newer" , "b":[ ] }"#
        );
    }
}

//! Replaces ranges of a body, so that all other bytes stay as the client wrote them.

use std::io::IoSlice;
use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memrchr;

/// Longer bodies are not copied for an edit.
const MAX_COPIED: usize = 64 << 10;

/// Replaces the bytes at `range` by `with`; an empty range inserts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub range: Range<usize>,
    pub with: Vec<u8>,
}

/// Applies edits to a copy of `body`; they must be in order and must not overlap.
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

/// The edit that removes the member of an object with this value.
pub fn remove_member(body: &[u8], value: Range<usize>) -> Edit {
    removal(body, start_of_name(body, value.start)..value.end)
}

/// The edits that remove the members of an object with these values, which are in order.
pub fn remove_members(body: &[u8], values: &[Range<usize>]) -> Vec<Edit> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for value in values {
        let start = start_of_name(body, value.start);
        match spans.last_mut() {
            // Neighbours have one comma between them, which only one edit can remove.
            Some(span) if body[span.end..start].trim_ascii() == b"," => span.end = value.end,
            _ => spans.push(start..value.end),
        }
    }
    let removals = spans.into_iter().map(|span| removal(body, span));
    removals.collect()
}

/// Where the name of a member begins whose value begins here.
fn start_of_name(body: &[u8], value: usize) -> usize {
    let before = body[..value].trim_ascii_end();
    let before = before.strip_suffix(b":").unwrap_or(before).trim_ascii_end();
    let name = before.strip_suffix(b"\"").unwrap_or(before);
    memrchr(b'"', name).unwrap_or(value)
}

/// The edit that removes members, with a comma beside them.
fn removal(body: &[u8], members: Range<usize>) -> Edit {
    let outside = body[..members.start].trim_ascii_end();
    let range = if outside.ends_with(b",") {
        outside.len() - 1..members.end
    } else {
        let rest = body[members.end..].trim_ascii_start();
        let end = match rest.strip_prefix(b",") {
            Some(rest) => body.len() - rest.len(),
            None => members.end,
        };
        members.start..end
    };
    Edit {
        range,
        with: Vec::new(),
    }
}

/// The edit that sets a member of the object that begins at `object`: where it is written, else as the first member.
pub fn set_member(
    body: &[u8],
    object: usize,
    name: &str,
    written: Option<Range<usize>>,
    value: &str,
) -> Edit {
    if let Some(range) = written {
        let with = value.as_bytes().to_vec();
        return Edit { range, with };
    }
    let first = object + 1;
    let is_empty = body[first..].trim_ascii_start().starts_with(b"}");
    let comma = if is_empty { "" } else { "," };
    Edit {
        range: first..first,
        with: ["\"", name, "\":", value, comma].concat().into_bytes(),
    }
}

/// Applies edits; a long body is not copied but shared.
pub fn splice(body: &Bytes, edits: &[Edit]) -> ChunkedBytes {
    if body.len() <= MAX_COPIED {
        return replace(body, edits).into();
    }
    let (mut all, mut from) = (Vec::with_capacity(2 * edits.len() + 1), 0);
    for edit in edits {
        all.push(body.slice(from..edit.range.start));
        all.push(Bytes::copy_from_slice(&edit.with));
        from = edit.range.end;
    }
    all.push(body.slice(from..));
    all.reverse();
    let first = all.pop().unwrap_or_default();
    ChunkedBytes {
        first,
        later_length: all.iter().map(Bytes::len).sum(),
        later: all,
    }
}

/// A body in one or several chunks.
#[derive(Debug, Clone, Default)]
pub struct ChunkedBytes {
    first: Bytes,
    /// In reverse order.
    later: Vec<Bytes>,
    /// The bytes in them: there may be many, and writing asks for the rest again and again.
    later_length: usize,
}

impl ChunkedBytes {
    pub fn len(&self) -> usize {
        self.remaining()
    }

    pub fn is_empty(&self) -> bool {
        !self.has_remaining()
    }

    /// Takes the next chunk that is not empty.
    pub fn next_chunk(&mut self) -> Option<Bytes> {
        while self.first.is_empty() {
            self.first = self.pop()?;
        }
        Some(std::mem::take(&mut self.first))
    }

    fn pop(&mut self) -> Option<Bytes> {
        let next = self.later.pop()?;
        self.later_length -= next.len();
        Some(next)
    }

    fn in_order(&self) -> impl Iterator<Item = &[u8]> {
        let all = std::iter::once(&self.first).chain(self.later.iter().rev());
        all.map(|chunk| &**chunk).filter(|chunk| !chunk.is_empty())
    }

    /// All remaining bytes in one chunk.
    pub fn into_bytes(mut self) -> Bytes {
        match self.later.is_empty() {
            true => self.first,
            false => self.copy_to_bytes(self.remaining()),
        }
    }
}

impl From<Bytes> for ChunkedBytes {
    fn from(first: Bytes) -> ChunkedBytes {
        ChunkedBytes {
            first,
            ..ChunkedBytes::default()
        }
    }
}

impl Buf for ChunkedBytes {
    fn remaining(&self) -> usize {
        self.first.len() + self.later_length
    }

    fn chunk(&self) -> &[u8] {
        self.in_order().next().unwrap_or_default()
    }

    fn chunks_vectored<'a>(&'a self, places: &mut [IoSlice<'a>]) -> usize {
        let filled = places.iter_mut().zip(self.in_order());
        filled
            .map(|(place, chunk)| *place = IoSlice::new(chunk))
            .count()
    }

    fn advance(&mut self, mut taken: usize) {
        while taken > self.first.len() && !self.later.is_empty() {
            taken -= self.first.len();
            self.first = self.pop().unwrap_or_default();
        }
        self.first.advance(taken);
    }
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

    /// A long document, edits at its beginning, in its midst and at its end, and what comes of them.
    fn edited() -> (Bytes, Vec<Edit>, Bytes) {
        let body: Vec<u8> = (0..MAX_COPIED + 1000).map(|place| place as u8).collect();
        let edit = |range, with: &[u8]| Edit {
            range,
            with: with.to_vec(),
        };
        let edits = vec![
            edit(0..0, b"begin"),
            edit(20..30, b""),
            edit(30..31, b"other"),
            edit(body.len()..body.len(), b"end"),
        ];
        let expected = replace(&body, &edits);
        (body.into(), edits, expected)
    }

    #[test]
    fn a_long_document_is_shared_and_reads_as_if_it_had_been_copied() {
        let (body, edits, expected) = edited();
        let mut spliced = splice(&body, &edits);
        assert_eq!(spliced.len(), expected.len());
        assert_eq!(spliced.clone().into_bytes(), expected);
        let (mut read, mut shared) = (Vec::new(), 0);
        while let Some(chunk) = spliced.next_chunk() {
            assert!(!chunk.is_empty());
            shared += usize::from(body.as_ptr_range().contains(&chunk.as_ptr())) * chunk.len();
            read.extend_from_slice(&chunk);
        }
        assert!(spliced.is_empty());
        assert_eq!(read, expected);
        assert_eq!(shared, body.len() - 11);
    }

    #[test]
    fn chunks_can_be_written_in_steps_of_any_size() {
        let (body, edits, expected) = edited();
        for taken in [1, 3, 1000, MAX_COPIED, expected.len()] {
            let mut spliced = splice(&body, &edits);
            let mut read = Vec::new();
            while spliced.has_remaining() {
                let mut places = [IoSlice::new(&[]); 2];
                let filled = spliced.chunks_vectored(&mut places);
                let seen: Vec<&[u8]> = places[..filled].iter().map(|place| &**place).collect();
                let seen = seen.concat();
                assert!(seen.starts_with(spliced.chunk()));
                let taken = taken.min(seen.len());
                read.extend_from_slice(&seen[..taken]);
                spliced.advance(taken);
            }
            assert_eq!(read, expected);
        }
    }
}

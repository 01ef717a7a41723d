//! Joins the chunks of a body; a single chunk is never copied.

use bytes::{Bytes, BytesMut};

/// The most memory that is reserved for an announced length before any of it has come.
const TRUSTED_LENGTH: usize = 1 << 20;

/// The most memory that is reserved ahead for a body of unknown length. It is not touched before it
/// is needed, and saves copies to a larger buffer.
const MAX_RESERVE: usize = 32 << 20;

/// A body that is collected in memory.
#[derive(Debug, Default)]
pub struct BodyBuffer {
    first: Bytes,
    more: BytesMut,
    expected_length: usize,
}

impl BodyBuffer {
    /// Makes a buffer for a body whose announced length may or may not be true.
    pub fn with_expected_length(expected_length: usize) -> BodyBuffer {
        BodyBuffer {
            expected_length,
            ..BodyBuffer::default()
        }
    }

    /// Returns the number of bytes so far.
    pub fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a chunk.
    pub fn push(&mut self, chunk: Bytes) {
        if self.is_empty() {
            self.first = chunk;
            return;
        }
        let first = std::mem::take(&mut self.first);
        self.reserve(first.len() + chunk.len());
        self.more.extend_from_slice(&first);
        self.more.extend_from_slice(&chunk);
    }

    /// Reserves memory in large steps: small ones would copy the body many times.
    fn reserve(&mut self, needed: usize) {
        let length = self.more.len();
        if length + needed > self.more.capacity() {
            let room = match length < TRUSTED_LENGTH {
                true => self
                    .expected_length
                    .min(TRUSTED_LENGTH)
                    .saturating_sub(length),
                false if length < self.expected_length => self.expected_length - length,
                false => MAX_RESERVE.min(7 * length),
            };
            self.more.reserve(needed.max(room));
        }
    }

    /// Takes the whole body.
    pub fn take(&mut self) -> Bytes {
        if self.more.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            std::mem::take(&mut self.more).freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffered(expected_length: usize, chunks: usize) -> BodyBuffer {
        let mut buffer = BodyBuffer::with_expected_length(expected_length);
        for chunk in 0..chunks {
            buffer.push(vec![chunk as u8; 1 << 16].into());
        }
        buffer
    }

    #[test]
    fn the_body_is_the_same_whatever_length_was_expected() {
        for expected_length in [0, 1, 1 << 16, 1 << 21, usize::MAX / 4] {
            for chunks in [0, 1, 2, 16] {
                let whole = buffered(expected_length, chunks).take();
                let expected = (0..chunks).flat_map(|chunk| vec![chunk as u8; 1 << 16]);
                assert!(
                    whole.iter().copied().eq(expected),
                    "{expected_length}, {chunks}"
                );
            }
        }
    }

    #[test]
    fn a_single_chunk_is_not_copied() {
        let chunk = Bytes::from(vec![1; 100]);
        let mut buffer = BodyBuffer::with_expected_length(100);
        buffer.push(chunk.clone());
        assert_eq!(buffer.take().as_ptr(), chunk.as_ptr());
    }

    #[test]
    fn a_body_of_unknown_length_is_seldom_copied() {
        let mut buffer = BodyBuffer::default();
        let mut moved = 0;
        for _ in 0..20 << 4 {
            let before = buffer.more.capacity();
            buffer.push(vec![0; 1 << 16].into());
            moved += usize::from(buffer.more.capacity() != before);
        }
        // Once for the second chunk, a few times while it is short, and twice when it is long.
        assert!(moved < 8, "{moved} times");
        assert!(buffer.more.capacity() <= 20 * TRUSTED_LENGTH + MAX_RESERVE);
    }

    #[test]
    fn the_expected_length_is_reserved_once_some_of_it_has_come() {
        assert_eq!(buffered(1 << 30, 2).more.capacity(), TRUSTED_LENGTH);
        let expected_length = 20 << 20;
        assert_eq!(
            buffered(expected_length, 17).more.capacity(),
            expected_length
        );
    }
}

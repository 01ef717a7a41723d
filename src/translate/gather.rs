//! ChunkedBytes made one; a single piece is never copied.

use bytes::{Bytes, BytesMut};

/// Room reserved on somebody's word alone. Who has sent this much is trusted with the rest of it.
const TRUSTED_LENGTH: usize = 1 << 20;

/// Room for what nobody has announced, beyond what is needed. None of it is touched before it is
/// needed, and what has it need not be copied to where there is more.
const SPARE: usize = 32 << 20;

#[derive(Debug, Default)]
pub struct BodyBuffer {
    first: Bytes,
    more: BytesMut,
    announced: usize,
}

impl BodyBuffer {
    /// So many bytes were announced, which may or may not come.
    pub fn with_expected_length(announced: usize) -> BodyBuffer {
        BodyBuffer {
            announced,
            ..BodyBuffer::default()
        }
    }

    pub fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, piece: Bytes) {
        if self.is_empty() {
            self.first = piece;
            return;
        }
        let first = std::mem::take(&mut self.first);
        self.reserve(first.len() + piece.len());
        self.more.extend_from_slice(&first);
        self.more.extend_from_slice(&piece);
    }

    /// All at once: growing step by step would copy most of it again and again.
    fn reserve(&mut self, needed: usize) {
        let length = self.more.len();
        if length + needed > self.more.capacity() {
            let room = match length < TRUSTED_LENGTH {
                true => self.announced.min(TRUSTED_LENGTH).saturating_sub(length),
                false if length < self.announced => self.announced - length,
                false => SPARE.min(7 * length),
            };
            self.more.reserve(needed.max(room));
        }
    }

    /// All of it, and nothing left.
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

    fn gathered(announced: usize, pieces: usize) -> BodyBuffer {
        let mut gathered = BodyBuffer::with_expected_length(announced);
        for piece in 0..pieces {
            gathered.push(vec![piece as u8; 1 << 16].into());
        }
        gathered
    }

    #[test]
    fn pieces_come_out_as_they_came_in_whatever_was_announced() {
        for announced in [0, 1, 1 << 16, 1 << 21, usize::MAX / 4] {
            for pieces in [0, 1, 2, 16] {
                let whole = gathered(announced, pieces).take();
                let expected = (0..pieces).flat_map(|piece| vec![piece as u8; 1 << 16]);
                assert!(whole.iter().copied().eq(expected), "{announced}, {pieces}");
            }
        }
    }

    #[test]
    fn a_single_piece_is_not_copied() {
        let piece = Bytes::from(vec![1; 100]);
        let mut gathered = BodyBuffer::with_expected_length(100);
        gathered.push(piece.clone());
        assert_eq!(gathered.take().as_ptr(), piece.as_ptr());
    }

    #[test]
    fn what_was_not_announced_is_seldom_copied() {
        let mut gathered = BodyBuffer::default();
        let mut moved = 0;
        for _ in 0..20 << 4 {
            let before = gathered.more.capacity();
            gathered.push(vec![0; 1 << 16].into());
            moved += usize::from(gathered.more.capacity() != before);
        }
        // Once when there is a second piece, while it is short, and twice when it is long.
        assert!(moved < 8, "{moved} times");
        assert!(gathered.more.capacity() <= 20 * TRUSTED_LENGTH + SPARE);
    }

    #[test]
    fn a_word_is_trusted_when_some_of_it_has_come() {
        assert_eq!(gathered(1 << 30, 2).more.capacity(), TRUSTED_LENGTH);
        let announced = 20 << 20;
        assert_eq!(gathered(announced, 17).more.capacity(), announced);
    }
}

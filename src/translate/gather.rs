//! Pieces made one; a single piece is never copied.

use bytes::{Bytes, BytesMut};

#[derive(Debug, Default)]
pub struct Gathered {
    first: Bytes,
    more: BytesMut,
}

impl Gathered {
    pub fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn add(&mut self, piece: Bytes) {
        if self.is_empty() {
            self.first = piece;
            return;
        }
        let first = std::mem::take(&mut self.first);
        self.more.extend_from_slice(&first);
        self.more.extend_from_slice(&piece);
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

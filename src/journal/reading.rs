//! A segment on its way to the books: whole lines, in batches.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::pen::Segment;
use super::{line, segment};
use crate::model::Receipt;

/// So many receipts go to the books at once.
pub(super) const BATCH: usize = 500;

/// What is read at once; a line that is longer makes it grow.
const CHUNK: u64 = 256 << 10;

pub(super) struct Reading {
    number: u64,
    file: File,
    /// Everything before it has been carried.
    offset: u64,
    is_damaged: bool,
    /// What was read last; kept for its room.
    bytes: Vec<u8>,
}

#[derive(Default)]
pub(super) struct Batch {
    pub(super) receipts: Vec<Receipt>,
    /// Those that are no receipts included.
    pub(super) lines: u64,
    /// Where those begin.
    pub(super) damaged: Vec<u64>,
    /// Where half a line begins that ends the segment.
    pub(super) torn: Option<u64>,
    end: u64,
}

impl Reading {
    pub(super) fn begin(folder: &Path, number: u64) -> io::Result<Reading> {
        Ok(Reading {
            number,
            file: File::open(segment::path(folder, number))?,
            offset: 0,
            is_damaged: false,
            bytes: Vec::new(),
        })
    }

    pub(super) const fn is_of(&self, segment: Segment) -> bool {
        self.number == segment.number
    }

    pub(super) const fn is_at_end(&self, segment: Segment) -> bool {
        self.offset >= segment.length
    }

    pub(super) const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// The next lines. They come again until they have been passed.
    pub(super) fn next(&mut self, length: u64) -> io::Result<Batch> {
        let mut chunk = CHUNK;
        loop {
            let left = length.saturating_sub(self.offset);
            let size = usize::try_from(left.min(chunk)).unwrap_or(usize::MAX);
            self.bytes.resize(size, 0);
            self.file.read_exact_at(&mut self.bytes, self.offset)?;
            let batch = self.batch();
            if batch.lines > 0 {
                return Ok(batch);
            }
            if left <= chunk {
                return Ok(Batch {
                    torn: Some(self.offset),
                    end: length,
                    ..batch
                });
            }
            chunk *= 2;
        }
    }

    fn batch(&self) -> Batch {
        let mut batch = Batch::default();
        batch.receipts.reserve_exact(BATCH);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &self.bytes).take(BATCH) {
            match line::read(&self.bytes[begin..end]) {
                Some(receipt) => batch.receipts.push(receipt),
                None => batch.damaged.push(self.offset + begin as u64),
            }
            batch.lines += 1;
            begin = end + 1;
        }
        batch.end = self.offset + begin as u64;
        batch
    }

    pub(super) fn pass(&mut self, batch: &Batch) {
        self.offset = batch.end;
        self.is_damaged |= !batch.damaged.is_empty();
    }
}

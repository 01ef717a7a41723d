//! A segment on its way to the books: whole lines, in batches.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::pen::Segment;
use super::{line, segment};
use crate::model::Receipt;

/// So many receipts go to the books at once.
pub(super) const BATCH: usize = 1000;

/// What is read at once; a line that is longer makes it grow.
const CHUNK: u64 = 256 << 10;

pub(super) struct Reading {
    number: u64,
    /// Opened when something is read that is not at hand any more.
    file: Option<File>,
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

impl Batch {
    /// Whole lines, up to there.
    pub(super) fn of(receipts: Vec<Receipt>, end: u64) -> Batch {
        Batch {
            lines: receipts.len() as u64,
            receipts,
            end,
            ..Batch::default()
        }
    }
}

impl Reading {
    pub(super) const fn begin(number: u64) -> Reading {
        Reading {
            number,
            file: None,
            offset: 0,
            is_damaged: false,
            bytes: Vec::new(),
        }
    }

    pub(super) const fn is_of(&self, segment: Segment) -> bool {
        self.number == segment.number
    }

    pub(super) const fn is_at_end(&self, segment: Segment) -> bool {
        self.offset >= segment.length
    }

    /// Everything before it has been carried.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// The next lines, up to there. They come again until they have been passed.
    pub(super) fn next(&mut self, folder: &Path, length: u64) -> io::Result<Batch> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(segment::path(folder, self.number))?,
        };
        let file = &*self.file.insert(file);
        let mut chunk = CHUNK;
        loop {
            let left = length.saturating_sub(self.offset);
            let size = usize::try_from(left.min(chunk)).unwrap_or(usize::MAX);
            self.bytes.resize(size, 0);
            file.read_exact_at(&mut self.bytes, self.offset)?;
            let batch = batch(&self.bytes, self.offset);
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

    pub(super) fn pass(&mut self, batch: &Batch) {
        self.offset = batch.end;
        self.is_damaged |= !batch.damaged.is_empty();
    }
}

/// The lines that stand here, of which the first begins at this place of its segment.
fn batch(bytes: &[u8], offset: u64) -> Batch {
    let mut batch = Batch::default();
    batch.receipts.reserve_exact(BATCH);
    let mut begin = 0;
    for end in memchr::memchr_iter(b'\n', bytes).take(BATCH) {
        match line::read(&bytes[begin..end]) {
            Some(receipt) => batch.receipts.push(receipt),
            None => batch.damaged.push(offset + begin as u64),
        }
        batch.lines += 1;
        begin = end + 1;
    }
    batch.end = offset + begin as u64;
    batch
}

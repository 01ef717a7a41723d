//! A segment on its way to the books: whole lines, in batches.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::pile::Segment;
use super::{line, segment};
use crate::model::UsageRecord;

/// So many receipts go to the books at once.
pub(super) const BATCH: usize = 1000;

/// What is read at once; a line that is longer makes it grow.
const CHUNK: u64 = 256 << 10;

pub(super) struct Reading {
    pub(super) segment: Segment,
    file: File,
    /// Everything before it has been carried.
    pub(super) offset: u64,
    pub(super) is_damaged: bool,
}

/// Lines of a segment, as receipts.
#[derive(Default)]
pub(super) struct Batch<'b> {
    pub(super) receipts: Vec<UsageRecord<'b>>,
    pub(super) passed: Passed,
}

/// What is known of lines when they are done with.
#[derive(Default)]
pub(super) struct Passed {
    /// Those that are no receipts included.
    pub(super) lines: u64,
    /// Where those begin.
    pub(super) damaged: Vec<u64>,
    /// Half a line ends the segment.
    pub(super) is_torn: bool,
    end: u64,
}

impl Reading {
    pub(super) fn begin(folder: &Path, segment: Segment) -> io::Result<Reading> {
        Ok(Reading {
            segment,
            file: File::open(segment::path(folder, segment.number))?,
            offset: 0,
            is_damaged: false,
        })
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.offset >= self.segment.length
    }

    /// The next bytes, at least one whole line; they come again until they have been passed.
    /// `false`: what is left of it is no whole line.
    pub(super) fn fill(&self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let mut chunk = CHUNK;
        loop {
            let left = self.segment.length.saturating_sub(self.offset);
            let size = usize::try_from(left.min(chunk)).unwrap_or(usize::MAX);
            bytes.resize(size, 0);
            self.file.read_exact_at(bytes, self.offset)?;
            if memchr::memchr(b'\n', bytes).is_some() {
                return Ok(true);
            }
            if left <= chunk {
                return Ok(false);
            }
            chunk *= 2;
        }
    }

    /// What is left of it, where that is no whole line.
    pub(super) fn rest(&self) -> Passed {
        Passed {
            is_torn: !self.is_at_end(),
            end: self.segment.length,
            ..Passed::default()
        }
    }

    pub(super) fn pass(&mut self, passed: &Passed) {
        self.offset = passed.end;
        self.is_damaged |= !passed.damaged.is_empty();
    }
}

impl<'b> Batch<'b> {
    /// The lines that stand here, of which the first begins at this place of its segment.
    pub(super) fn of(bytes: &'b [u8], offset: u64) -> Batch<'b> {
        let mut batch = Batch::default();
        batch.receipts.reserve_exact(BATCH);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', bytes).take(BATCH) {
            match line::read(&bytes[begin..end]) {
                Some(receipt) => batch.receipts.push(receipt),
                None => batch.passed.damaged.push(offset + begin as u64),
            }
            batch.passed.lines += 1;
            begin = end + 1;
        }
        batch.passed.end = offset + begin as u64;
        batch
    }
}

//! Reads a segment in batches of whole lines.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::segment_set::JournalSegment;
use super::{record_line, segment_file};
use crate::model::UsageRecord;

/// Maximum number of records in a batch.
pub(super) const BATCH: usize = 1000;

/// Bytes that are read at once; a longer line makes the buffer grow.
const READ_SIZE: u64 = 256 << 10;

pub(super) struct SegmentReader {
    pub(super) segment: JournalSegment,
    file: File,
    /// Everything before this offset has been flushed.
    pub(super) offset: u64,
    pub(super) is_damaged: bool,
}

/// The decoded lines of one read.
#[derive(Default)]
pub(super) struct RecordBatch<'b> {
    pub(super) records: Vec<UsageRecord<'b>>,
    pub(super) flushed: FlushedLines,
}

/// What a reader moves past: the lines of a batch, or the incomplete rest of a segment.
#[derive(Default)]
pub(super) struct FlushedLines {
    /// Damaged lines included.
    pub(super) lines: u64,
    /// Offsets of the damaged lines.
    pub(super) damaged: Vec<u64>,
    /// The segment ends with an incomplete line.
    pub(super) is_incomplete: bool,
    end: u64,
}

impl SegmentReader {
    pub(super) fn open(folder: &Path, segment: JournalSegment) -> io::Result<SegmentReader> {
        Ok(SegmentReader {
            segment,
            file: File::open(segment_file::path(folder, segment.number))?,
            offset: 0,
            is_damaged: false,
        })
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.offset >= self.segment.length
    }

    /// Reads the next bytes, at least one whole line; the same bytes come again until `advance` is called.
    /// `false`: the rest of the segment is no whole line.
    pub(super) fn fill(&self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let mut chunk = READ_SIZE;
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

    /// The rest of the segment, where that is no whole line.
    pub(super) fn rest(&self) -> FlushedLines {
        FlushedLines {
            is_incomplete: !self.is_at_end(),
            end: self.segment.length,
            ..FlushedLines::default()
        }
    }

    pub(super) fn advance(&mut self, flushed: &FlushedLines) {
        self.offset = flushed.end;
        self.is_damaged |= !flushed.damaged.is_empty();
    }
}

impl<'b> RecordBatch<'b> {
    /// Decodes whole lines, of which the first begins at `offset` in its segment.
    pub(super) fn decode(bytes: &'b [u8], offset: u64) -> RecordBatch<'b> {
        let mut batch = RecordBatch::default();
        batch.records.reserve_exact(BATCH);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', bytes).take(BATCH) {
            match record_line::decode(&bytes[begin..end]) {
                Some(record) => batch.records.push(record),
                None => batch.flushed.damaged.push(offset + begin as u64),
            }
            batch.flushed.lines += 1;
            begin = end + 1;
        }
        batch.flushed.end = offset + begin as u64;
        batch
    }
}

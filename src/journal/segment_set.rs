//! The segments of a journal: how many bytes they take, and which are closed and wait to be flushed.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::private_file;
use super::segment_file;

/// A segment is closed when it is as long as this.
const MAX_SEGMENT_LENGTH: u64 = 4 << 20;
/// A segment is at most this fraction of the limit, so that flushed lines that are not yet deleted take little of it.
const SEGMENTS_IN_LIMIT: u64 = 16;

/// Shared by all segment writers and the flusher.
pub(super) struct SegmentSet {
    folder: PathBuf,
    limit: u64,
    max_segment_length: u64,
    next: AtomicU64,
    bytes: AtomicU64,
    waiting: AtomicU64,
    /// Of the waiting records, those that an earlier process left; they are flushed first.
    previous: AtomicU64,
    has_warned: AtomicBool,
    /// Oldest first.
    closed: Mutex<VecDeque<ClosedSegment>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JournalSegment {
    pub(super) number: u64,
    /// Everything up to here is whole lines; only a segment of an earlier process may end with an incomplete one.
    pub(super) length: u64,
}

pub(super) struct ClosedSegment {
    pub(super) segment: JournalSegment,
    /// The file, where it is not known to be synced.
    pub(super) unsynced: Option<Arc<File>>,
}

/// A line would go beyond the limit of the journal.
#[derive(Debug)]
pub(super) struct JournalFull;

impl SegmentSet {
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<SegmentSet> {
        let (found, next) = segment_file::find(folder)?;
        let closed = found.iter().map(|found| ClosedSegment {
            segment: JournalSegment {
                number: found.number,
                length: found.length,
            },
            unsynced: None,
        });
        let waiting = found.iter().map(|found| found.lines).sum();
        Ok(SegmentSet {
            folder: folder.to_owned(),
            limit,
            max_segment_length: (limit / SEGMENTS_IN_LIMIT).min(MAX_SEGMENT_LENGTH),
            next: next.into(),
            bytes: found.iter().map(|found| found.length).sum::<u64>().into(),
            waiting: AtomicU64::new(waiting),
            previous: AtomicU64::new(waiting),
            has_warned: AtomicBool::new(false),
            closed: Mutex::new(closed.collect()),
        })
    }

    /// Reserves the bytes of a line. `true`: with it the journal has become nearly full.
    pub(super) fn reserve(&self, length: u64) -> Result<bool, JournalFull> {
        let bytes = self.bytes.fetch_add(length, Ordering::Relaxed) + length;
        if bytes > self.limit {
            self.release_bytes(length);
            return Err(JournalFull);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let is_nearly_full = bytes >= self.warning_level();
        Ok(is_nearly_full && !self.has_warned.swap(true, Ordering::Relaxed))
    }

    /// Gives back the bytes of a line that could not be written.
    pub(super) fn release_line(&self, length: u64) {
        self.release_bytes(length);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    fn release_bytes(&self, length: u64) {
        let before = self.bytes.fetch_sub(length, Ordering::Relaxed);
        if before - length < self.warning_level() && self.has_warned.load(Ordering::Relaxed) {
            self.has_warned.store(false, Ordering::Relaxed);
        }
    }

    /// Creates a new segment file.
    pub(super) fn create(&self) -> io::Result<(u64, File)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = segment_file::path(&self.folder, number);
        let mut options = private_file::options();
        let file = options.append(true).create_new(true).open(path)?;
        Ok((number, file))
    }

    /// Tells whether a segment of this length is to be closed.
    pub(super) const fn is_long(&self, length: u64) -> bool {
        length >= self.max_segment_length
    }

    pub(super) fn push_closed(&self, closed: ClosedSegment) {
        self.closed().push_back(closed);
    }

    /// The segment that is flushed next.
    pub(super) fn oldest(&self) -> Option<JournalSegment> {
        self.closed().front().map(|closed| closed.segment)
    }

    /// Counts lines of the oldest segment as flushed, and returns how many records of earlier processes are left.
    pub(super) fn count_flushed(&self, lines: u64) -> u64 {
        // Only the flusher changes `previous`; the writers only add to `waiting`.
        self.waiting.fetch_sub(lines, Ordering::Relaxed);
        let previous = self.previous().saturating_sub(lines);
        self.previous.store(previous, Ordering::Relaxed);
        previous
    }

    /// Deletes the oldest segment, or sets it aside where it is damaged.
    pub(super) fn remove_oldest(&self, is_damaged: bool) {
        let Some(ClosedSegment { segment, .. }) = self.closed().pop_front() else {
            return;
        };
        self.release_bytes(segment.length);
        let path = segment_file::path(&self.folder, segment.number);
        let removed = match is_damaged {
            true => fs::rename(
                &path,
                segment_file::damaged_path(&self.folder, segment.number),
            ),
            false => fs::remove_file(&path),
        };
        if let Err(error) = removed {
            let path = path.display();
            log::error!("journal: {path} is flushed but cannot be removed: {error}");
        }
    }

    /// The closed files that are not synced yet.
    pub(super) fn take_unsynced(&self) -> Vec<Arc<File>> {
        let mut closed = self.closed();
        let files = closed.iter_mut().map(|closed| closed.unsynced.take());
        files.flatten().collect()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn previous(&self) -> u64 {
        self.previous.load(Ordering::Relaxed)
    }

    pub(super) fn is_nearly_full(&self) -> bool {
        self.bytes() >= self.warning_level()
    }

    /// The journal counts as nearly full at four fifths of the limit.
    const fn warning_level(&self) -> u64 {
        self.limit / 5 * 4
    }

    #[cfg(test)]
    pub(super) const fn shorten_segments(&mut self, length: u64) {
        self.max_segment_length = length;
    }

    fn closed(&self) -> MutexGuard<'_, VecDeque<ClosedSegment>> {
        // Nothing panics while it is held.
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

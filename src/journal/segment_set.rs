//! What all pens share: how much room there is, and the segments that nothing is written to any more.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::segment;

/// A segment goes on until it is as long as this.
const LONGEST_SEGMENT: u64 = 4 << 20;
/// Of the limit, so that what is carried and not yet deleted never fills much of it.
const SEGMENTS_IN_LIMIT: u64 = 16;

pub(super) struct Pile {
    folder: PathBuf,
    limit: u64,
    longest: u64,
    next: AtomicU64,
    bytes: AtomicU64,
    waiting: AtomicU64,
    /// Of those that wait, how many an earlier process left; they are carried first.
    earlier: AtomicU64,
    has_alarmed: AtomicBool,
    /// Oldest first.
    sealed: Mutex<VecDeque<Sealed>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) number: u64,
    /// Up to here there are whole lines, but for one from before that may have been torn.
    pub(super) length: u64,
}

pub(super) struct Sealed {
    pub(super) segment: Segment,
    /// Where it is not known to be on the disk.
    pub(super) unsynced: Option<Arc<File>>,
}

/// There is no room for a line.
#[derive(Debug)]
pub(super) struct Full;

impl Pile {
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Pile> {
        let (found, next) = segment::find(folder)?;
        let sealed = found.iter().map(|found| Sealed {
            segment: Segment {
                number: found.number,
                length: found.length,
            },
            unsynced: None,
        });
        let waiting = found.iter().map(|found| found.lines).sum();
        Ok(Pile {
            folder: folder.to_owned(),
            limit,
            longest: (limit / SEGMENTS_IN_LIMIT).min(LONGEST_SEGMENT),
            next: next.into(),
            bytes: found.iter().map(|found| found.length).sum::<u64>().into(),
            waiting: AtomicU64::new(waiting),
            earlier: AtomicU64::new(waiting),
            has_alarmed: AtomicBool::new(false),
            sealed: Mutex::new(sealed.collect()),
        })
    }

    /// Room for a line of so many bytes. `true`: with it the journal has become nearly full.
    pub(super) fn take_room(&self, length: u64) -> Result<bool, Full> {
        let bytes = self.bytes.fetch_add(length, Ordering::Relaxed) + length;
        if bytes > self.limit {
            self.give_room(length);
            return Err(Full);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let is_nearly_full = bytes >= self.nearly_full();
        Ok(is_nearly_full && !self.has_alarmed.swap(true, Ordering::Relaxed))
    }

    /// A line for which there was room could not be written.
    pub(super) fn give_back(&self, length: u64) {
        self.give_room(length);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    fn give_room(&self, length: u64) {
        let before = self.bytes.fetch_sub(length, Ordering::Relaxed);
        if before - length < self.nearly_full() && self.has_alarmed.load(Ordering::Relaxed) {
            self.has_alarmed.store(false, Ordering::Relaxed);
        }
    }

    /// A new segment, to write to.
    pub(super) fn begin(&self) -> io::Result<(u64, File)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut options = OpenOptions::new();
        let path = segment::path(&self.folder, number);
        let file = options.append(true).create_new(true).open(path)?;
        Ok((number, file))
    }

    /// Whether a segment is long enough.
    pub(super) const fn is_long(&self, length: u64) -> bool {
        length >= self.longest
    }

    pub(super) fn signature(&self, sealed: Sealed) {
        self.sealed().push_back(sealed);
    }

    /// What is to be carried next.
    pub(super) fn oldest(&self) -> Option<Segment> {
        self.sealed().front().map(|sealed| sealed.segment)
    }

    /// So many lines of the oldest segment are in the books, or are none. How many of those that
    /// earlier processes left are not.
    pub(super) fn carried(&self, lines: u64) -> u64 {
        // Only who carries changes the one, and others only add to the other.
        self.waiting.fetch_sub(lines, Ordering::Relaxed);
        let earlier = self.earlier().saturating_sub(lines);
        self.earlier.store(earlier, Ordering::Relaxed);
        earlier
    }

    /// Deletes the oldest segment, all of which has been carried.
    pub(super) fn retire(&self, is_damaged: bool) {
        let Some(Sealed { segment, .. }) = self.sealed().pop_front() else {
            return;
        };
        self.give_room(segment.length);
        let path = segment::path(&self.folder, segment.number);
        let gone = match is_damaged {
            true => fs::rename(&path, segment::aside(&self.folder, segment.number)),
            false => fs::remove_file(&path),
        };
        if let Err(error) = gone {
            let path = path.display();
            log::error!("journal: {path} is carried and cannot be removed: {error}");
        }
    }

    /// The files whose end may not be on the disk yet.
    pub(super) fn take_unsynced(&self) -> Vec<Arc<File>> {
        let mut sealed = self.sealed();
        let files = sealed.iter_mut().map(|sealed| sealed.unsynced.take());
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

    pub(super) fn earlier(&self) -> u64 {
        self.earlier.load(Ordering::Relaxed)
    }

    pub(super) fn is_nearly_full(&self) -> bool {
        self.bytes() >= self.nearly_full()
    }

    /// Four fifths.
    const fn nearly_full(&self) -> u64 {
        self.limit / 5 * 4
    }

    #[cfg(test)]
    pub(super) const fn shorten_segments(&mut self, longest: u64) {
        self.longest = longest;
    }

    fn sealed(&self) -> MutexGuard<'_, VecDeque<Sealed>> {
        // Nothing panics while it is held.
        self.sealed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The one hand that writes: whoever holds it appends a line, or learns what there is to carry.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::segment;

/// A segment goes on until it is as long as this.
const LONGEST_SEGMENT: u64 = 4 << 20;
/// Of the limit, so that what is carried and not yet deleted never fills much of it.
const SEGMENTS_IN_LIMIT: u64 = 16;

pub(super) struct Pen {
    folder: PathBuf,
    limit: u64,
    longest: u64,
    /// Made when there is something to write.
    active: Option<Active>,
    /// Those that nothing is written to any more, oldest first.
    sealed: VecDeque<Segment>,
    next: u64,
    bytes: u64,
    waiting: u64,
    /// Of those that wait, how many an earlier process left; they are carried first.
    earlier: u64,
    /// Closed, and not known to be on the disk.
    unsynced: Vec<Arc<File>>,
    has_alarmed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) number: u64,
    /// Up to here there are whole lines, but for one from before that may have been torn.
    pub(super) length: u64,
    pub(super) is_sealed: bool,
}

struct Active {
    number: u64,
    file: Arc<File>,
    length: u64,
    is_synced: bool,
    /// Half a line stands at its end: nothing may follow it.
    is_torn: bool,
}

/// Why a line was not written.
#[derive(Debug)]
pub(super) enum Refused {
    Full,
    Failed(io::Error),
}

impl Pen {
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Pen> {
        let (found, next) = segment::find(folder)?;
        let sealed = found.iter().map(|found| Segment {
            number: found.number,
            length: found.length,
            is_sealed: true,
        });
        let waiting = found.iter().map(|found| found.lines).sum();
        Ok(Pen {
            folder: folder.to_owned(),
            limit,
            longest: (limit / SEGMENTS_IN_LIMIT).min(LONGEST_SEGMENT),
            active: None,
            sealed: sealed.collect(),
            next,
            bytes: found.iter().map(|found| found.length).sum(),
            waiting,
            earlier: waiting,
            unsynced: Vec::new(),
            has_alarmed: false,
        })
    }

    /// `true`: with this line the journal has become nearly full.
    pub(super) fn write(&mut self, line: &[u8]) -> Result<bool, Refused> {
        let length = line.len() as u64;
        if self.bytes + length > self.limit {
            return Err(Refused::Full);
        }
        let active = self.active().map_err(Refused::Failed)?;
        if let Err(error) = put(&active.file, line) {
            // The half of it that may be there is taken back; else nothing more goes into this file.
            active.is_torn = active.file.set_len(active.length).is_err();
            return Err(Refused::Failed(error));
        }
        active.length += length;
        active.is_synced = false;
        self.bytes += length;
        self.waiting += 1;
        let alarms = self.is_nearly_full() && !self.has_alarmed;
        self.has_alarmed |= alarms;
        Ok(alarms)
    }

    fn active(&mut self) -> io::Result<&mut Active> {
        let is_over = |active: &Active| active.is_torn || active.length >= self.longest;
        if self.active.as_ref().is_some_and(is_over) {
            self.seal();
        }
        let active = match self.active.take() {
            Some(active) => active,
            None => self.begin()?,
        };
        Ok(self.active.insert(active))
    }

    fn begin(&mut self) -> io::Result<Active> {
        let path = segment::path(&self.folder, self.next);
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true).open(path)?;
        self.next += 1;
        Ok(Active {
            number: self.next - 1,
            file: Arc::new(file),
            length: 0,
            is_synced: true,
            is_torn: false,
        })
    }

    fn seal(&mut self) {
        if let Some(active) = self.active.take() {
            self.sealed.push_back(Segment {
                number: active.number,
                length: active.length,
                is_sealed: true,
            });
            if !active.is_synced {
                self.unsynced.push(active.file);
            }
        }
    }

    /// What is to be carried next.
    pub(super) fn oldest(&self) -> Option<Segment> {
        let active = self.active.as_ref().map(|active| Segment {
            number: active.number,
            length: active.length,
            is_sealed: false,
        });
        self.sealed.front().copied().or(active)
    }

    /// So many lines of the oldest segment are in the books, or are none.
    pub(super) fn carried(&mut self, lines: u64) {
        self.waiting = self.waiting.saturating_sub(lines);
        self.earlier = self.earlier.saturating_sub(lines);
    }

    /// Deletes the oldest segment if it is the one that was carried up to there, which is its end.
    /// One that is written to only if it is long enough to be worth it, or `at_once`.
    pub(super) fn retire(&mut self, carried: Segment, is_damaged: bool, at_once: bool) -> bool {
        let oldest = self.oldest();
        let Some(oldest) = oldest.filter(|oldest| oldest.number == carried.number) else {
            return false;
        };
        let is_worth_it = oldest.is_sealed || at_once || oldest.length >= self.longest / 16;
        if oldest.length != carried.length || !is_worth_it {
            return false;
        }
        match oldest.is_sealed {
            true => self.sealed.pop_front().map(drop),
            false => self.active.take().map(drop),
        };
        self.bytes -= oldest.length;
        self.has_alarmed &= self.is_nearly_full();
        let path = segment::path(&self.folder, oldest.number);
        let gone = match is_damaged {
            true => fs::rename(&path, segment::aside(&self.folder, oldest.number)),
            false => fs::remove_file(&path),
        };
        if let Err(error) = gone {
            let path = path.display();
            log::error!("journal: {path} is carried and cannot be removed: {error}");
        }
        true
    }

    /// The files whose end may not be on the disk yet. What the books have need not be there.
    pub(super) fn take_unsynced(&mut self) -> Option<Vec<Arc<File>>> {
        let mut files = std::mem::take(&mut self.unsynced);
        if let Some(active) = self.active.as_mut().filter(|active| !active.is_synced) {
            active.is_synced = true;
            files.push(active.file.clone());
        }
        (!files.is_empty() && self.waiting > 0).then_some(files)
    }

    #[cfg(test)]
    pub(super) const fn shorten_segments(&mut self, longest: u64) {
        self.longest = longest;
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) const fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(super) const fn earlier(&self) -> u64 {
        self.earlier
    }

    /// Four fifths.
    pub(super) const fn is_nearly_full(&self) -> bool {
        self.bytes >= self.limit / 5 * 4
    }

    pub(super) fn is_empty(&self) -> bool {
        self.oldest().is_none()
    }
}

/// One write: it is there as a whole, or not.
fn put(mut file: &File, line: &[u8]) -> io::Result<()> {
    loop {
        match file.write(line) {
            Ok(count) if count == line.len() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::StorageFull.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_costs_no_line_that_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut pen = Pen::open(folder.path(), 1 << 20).expect("a folder");
        pen.write(b"one\n").expect("some room");
        let whole = pen.active.take().expect("a file");
        let full = OpenOptions::new().append(true).open("/dev/full");
        pen.active = Some(Active {
            file: Arc::new(full.expect("a device")),
            ..whole
        });
        let refused = pen.write(b"two\n").expect_err("no room");
        assert!(
            matches!(refused, Refused::Failed(error) if error.kind() == io::ErrorKind::StorageFull)
        );
        // It cannot be cut back either, so that what follows goes elsewhere.
        pen.write(b"three\n").expect("room in another");
        assert_eq!((pen.bytes(), pen.waiting()), (10, 2));
        let content = |number| fs::read(segment::path(folder.path(), number)).expect("a file");
        assert_eq!(
            (content(1), content(2)),
            (b"one\n".to_vec(), b"three\n".to_vec())
        );
    }
}

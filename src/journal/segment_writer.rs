//! Appends lines to a segment of its own.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use super::segment_set::{ClosedSegment, JournalFull, JournalSegment, SegmentSet};

/// Each thread uses its own writer, so that none waits for the disk write of another. The alignment
/// keeps two writers off one cache line.
#[repr(align(64))]
#[derive(Default)]
pub(super) struct SegmentWriter {
    /// Created with the first line.
    active: Option<ActiveSegment>,
}

struct ActiveSegment {
    segment: JournalSegment,
    file: Arc<File>,
    is_synced: bool,
    /// The file ends with an incomplete line: nothing may follow it.
    is_incomplete: bool,
}

/// Why a line could not be appended.
#[derive(Debug)]
pub(super) enum AppendError {
    Full,
    Failed(io::Error),
}

impl From<JournalFull> for AppendError {
    fn from(JournalFull: JournalFull) -> AppendError {
        AppendError::Full
    }
}

impl SegmentWriter {
    /// `true`: with this line the journal has become nearly full.
    pub(super) fn append(
        &mut self,
        line: &[u8],
        segments: &SegmentSet,
    ) -> Result<bool, AppendError> {
        let length = line.len() as u64;
        let crosses_warning_level = segments.reserve(length)?;
        let written = self.append_reserved(line, segments);
        written.map(|()| crosses_warning_level).map_err(|error| {
            segments.release_line(length);
            AppendError::Failed(error)
        })
    }

    fn append_reserved(&mut self, line: &[u8], segments: &SegmentSet) -> io::Result<()> {
        let is_over = |active: &ActiveSegment| {
            active.is_incomplete || segments.is_long(active.segment.length)
        };
        if self.active.as_ref().is_some_and(is_over) {
            self.close(segments);
        }
        let active = match &mut self.active {
            Some(active) => active,
            none => none.insert(ActiveSegment::create(segments)?),
        };
        if let Err(error) = write_line(&active.file, line) {
            // A partial write is cut off; where that fails, nothing more goes into this file.
            active.is_incomplete = active.file.set_len(active.segment.length).is_err();
            return Err(error);
        }
        active.segment.length += line.len() as u64;
        active.is_synced = false;
        Ok(())
    }

    /// Closes the segment; the next line begins another.
    pub(super) fn close(&mut self, segments: &SegmentSet) {
        if let Some(active) = self.active.take() {
            segments.push_closed(ClosedSegment {
                segment: active.segment,
                unsynced: (!active.is_synced).then_some(active.file),
            });
        }
    }

    /// The file, if it is not synced yet.
    pub(super) fn take_unsynced(&mut self) -> Option<Arc<File>> {
        let active = self.active.as_mut().filter(|active| !active.is_synced)?;
        active.is_synced = true;
        Some(active.file.clone())
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.active.is_none()
    }
}

impl ActiveSegment {
    fn create(segments: &SegmentSet) -> io::Result<ActiveSegment> {
        let (number, file) = segments.create()?;
        Ok(ActiveSegment {
            segment: JournalSegment { number, length: 0 },
            file: Arc::new(file),
            is_synced: true,
            is_incomplete: false,
        })
    }
}

/// Writes a line with one system call.
fn write_line(mut file: &File, line: &[u8]) -> io::Result<()> {
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
    use std::fs::{self, OpenOptions};

    use super::super::segment_file;
    use super::*;

    #[test]
    fn a_disk_that_is_full_costs_no_line_that_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let segments = SegmentSet::open(folder.path(), 1 << 20).expect("a folder");
        let mut writer = SegmentWriter::default();
        writer.append(b"one\n", &segments).expect("some room");
        let whole = writer.active.take().expect("a file");
        let full = OpenOptions::new().append(true).open("/dev/full");
        writer.active = Some(ActiveSegment {
            file: Arc::new(full.expect("a device")),
            ..whole
        });
        let refused = writer.append(b"two\n", &segments).expect_err("no room");
        assert!(
            matches!(refused, AppendError::Failed(error) if error.kind() == io::ErrorKind::StorageFull)
        );
        // It cannot be cut back either, so that what follows goes elsewhere.
        writer
            .append(b"three\n", &segments)
            .expect("room in another");
        assert_eq!((segments.bytes(), segments.waiting()), (10, 2));
        let content = |number| fs::read(segment_file::path(folder.path(), number)).expect("a file");
        assert_eq!(
            (content(1), content(2)),
            (b"one\n".to_vec(), b"three\n".to_vec())
        );
    }
}

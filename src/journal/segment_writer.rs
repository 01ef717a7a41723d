//! One of the hands that write: it appends lines to a segment of its own.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use super::pile::{Full, Pile, Sealed, Segment};

/// Each thread has one, so that none waits for the disk with another's line. In memory they keep
/// apart too.
#[repr(align(64))]
#[derive(Default)]
pub(super) struct Pen {
    /// Made when there is something to write.
    active: Option<Active>,
}

struct Active {
    segment: Segment,
    file: Arc<File>,
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

impl From<Full> for Refused {
    fn from(Full: Full) -> Refused {
        Refused::Full
    }
}

impl Pen {
    /// `true`: with this line the journal has become nearly full.
    pub(super) fn write(&mut self, line: &[u8], pile: &Pile) -> Result<bool, Refused> {
        let length = line.len() as u64;
        let alarms = pile.take_room(length)?;
        let written = self.append(line, pile);
        written.map(|()| alarms).map_err(|error| {
            pile.give_back(length);
            Refused::Failed(error)
        })
    }

    fn append(&mut self, line: &[u8], pile: &Pile) -> io::Result<()> {
        let is_over = |active: &Active| active.is_torn || pile.is_long(active.segment.length);
        if self.active.as_ref().is_some_and(is_over) {
            self.signature(pile);
        }
        let active = match &mut self.active {
            Some(active) => active,
            none => none.insert(Active::begin(pile)?),
        };
        if let Err(error) = put(&active.file, line) {
            // The half of it that may be there is taken back; else nothing more goes into this file.
            active.is_torn = active.file.set_len(active.segment.length).is_err();
            return Err(error);
        }
        active.segment.length += line.len() as u64;
        active.is_synced = false;
        Ok(())
    }

    /// Puts what it has written on the pile; the next line begins another segment.
    pub(super) fn signature(&mut self, pile: &Pile) {
        if let Some(active) = self.active.take() {
            pile.signature(Sealed {
                segment: active.segment,
                unsynced: (!active.is_synced).then_some(active.file),
            });
        }
    }

    /// The file, if its end may not be on the disk yet.
    pub(super) fn take_unsynced(&mut self) -> Option<Arc<File>> {
        let active = self.active.as_mut().filter(|active| !active.is_synced)?;
        active.is_synced = true;
        Some(active.file.clone())
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.active.is_none()
    }
}

impl Active {
    fn begin(pile: &Pile) -> io::Result<Active> {
        let (number, file) = pile.begin()?;
        Ok(Active {
            segment: Segment { number, length: 0 },
            file: Arc::new(file),
            is_synced: true,
            is_torn: false,
        })
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
    use std::fs::{self, OpenOptions};

    use super::super::segment;
    use super::*;

    #[test]
    fn a_disk_that_is_full_costs_no_line_that_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let pile = Pile::open(folder.path(), 1 << 20).expect("a folder");
        let mut pen = Pen::default();
        pen.write(b"one\n", &pile).expect("some room");
        let whole = pen.active.take().expect("a file");
        let full = OpenOptions::new().append(true).open("/dev/full");
        pen.active = Some(Active {
            file: Arc::new(full.expect("a device")),
            ..whole
        });
        let refused = pen.write(b"two\n", &pile).expect_err("no room");
        assert!(
            matches!(refused, Refused::Failed(error) if error.kind() == io::ErrorKind::StorageFull)
        );
        // It cannot be cut back either, so that what follows goes elsewhere.
        pen.write(b"three\n", &pile).expect("room in another");
        assert_eq!((pile.bytes(), pile.waiting()), (10, 2));
        let content = |number| fs::read(segment::path(folder.path(), number)).expect("a file");
        assert_eq!(
            (content(1), content(2)),
            (b"one\n".to_vec(), b"three\n".to_vec())
        );
    }
}

//! The disk of a SQLite store, of which the last part is left to usage records.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

/// How much of a file system must be free for anything but usage records.
pub(super) struct DiskReserve {
    folder: PathBuf,
    min_free: u64,
}

impl DiskReserve {
    /// The reserve on the file system of a file.
    pub(super) fn beside(file: &Path, min_free: u64) -> DiskReserve {
        let folder = file.parent().filter(|folder| *folder != Path::new(""));
        DiskReserve {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            min_free,
        }
    }

    /// Whether more than the reserve is free.
    pub(super) fn is_left(&self) -> bool {
        // A file system that does not tell is taken for one with room.
        let Ok(disk) = statvfs(&self.folder) else {
            return true;
        };
        let free = disk.blocks_available().saturating_mul(disk.fragment_size());
        free >= self.min_free
    }
}

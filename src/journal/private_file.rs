//! Files that only the gateway's own user may read: usage says who asked for what.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;
/// The permissions of everyone else.
const OTHERS: u32 = 0o077;

/// Options to write a file that is created with mode 0600.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(FILE);
    options
}

/// Creates a folder with mode 0700. In one that others may look into, at least the files are closed to them.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER)
        .create(folder)?;
    if folder.metadata()?.permissions().mode() & OTHERS == 0 {
        return Ok(());
    }
    let mut mended = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.contains(".receipts"));
        let is_open = entry.metadata()?.permissions().mode() & OTHERS != 0;
        if is_ours && is_open && entry.file_type()?.is_file() {
            fs::set_permissions(entry.path(), Permissions::from_mode(FILE))?;
            mended += 1;
        }
    }
    if mended > 0 {
        let folder = folder.display();
        log::warn!(
            "journal: other users could read {mended} files in {folder}; their mode is 0600 now"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn a_journal_is_closed_to_other_users() {
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("a/journal");
        create_folder(&folder).expect("created");
        assert_eq!(mode(&folder), 0o700);
        let file = folder.join("000000000001.receipts");
        drop(options().create_new(true).open(&file).expect("a file"));
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("opened");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("opened");
        create_folder(&folder).expect("still there");
        assert_eq!((mode(&folder), mode(&file)), (0o755, 0o600));
    }
}

//! Names and finds the files of a journal; files with other names are ignored.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".receipts";
const DAMAGED_SUFFIX: &str = ".receipts.damaged";

pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}{SUFFIX}"))
}

/// The path of a segment with damaged lines, which is kept for a person to look at.
pub(super) fn damaged_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}{DAMAGED_SUFFIX}"))
}

/// A segment that an earlier process left.
pub(super) struct FoundSegment {
    pub(super) number: u64,
    pub(super) length: u64,
    pub(super) lines: u64,
}

/// Finds the segments in a folder, oldest first, and a number that none of them has.
pub(super) fn find(folder: &Path) -> io::Result<(Vec<FoundSegment>, u64)> {
    let mut numbers = Vec::new();
    let mut next = 1;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        // A damaged segment that was set aside must not be overwritten.
        let taken = name.strip_suffix(DAMAGED_SUFFIX).and_then(parse_number);
        next = next.max(taken.map_or(1, |number| number + 1));
        let Some(number) = name.strip_suffix(SUFFIX).and_then(parse_number) else {
            continue;
        };
        if entry.file_type()?.is_file() {
            numbers.push(number);
            next = next.max(number + 1);
        }
    }
    numbers.sort_unstable();
    let found = numbers.into_iter().map(|number| measure(folder, number));
    Ok((found.collect::<io::Result<_>>()?, next))
}

fn parse_number(digits: &str) -> Option<u64> {
    let number = digits.parse().ok()?;
    (digits == format!("{number:012}")).then_some(number)
}

fn measure(folder: &Path, number: u64) -> io::Result<FoundSegment> {
    let mut file = File::open(path(folder, number))?;
    let mut buffer = vec![0; 64 << 10];
    let (mut length, mut lines) = (0, 0);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(FoundSegment {
                number,
                length,
                lines,
            });
        }
        length += count as u64;
        lines += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64;
    }
}

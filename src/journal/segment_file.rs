//! The files of a journal by their names; what has another name is nobody's business here.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".receipts";
const SET_ASIDE: &str = ".receipts.damaged";

pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}{SUFFIX}"))
}

/// Where a segment goes whose lines could not all be read.
pub(super) fn aside(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}{SET_ASIDE}"))
}

/// One that was there when the process began.
pub(super) struct Found {
    pub(super) number: u64,
    pub(super) length: u64,
    pub(super) lines: u64,
}

/// The segments in a folder, oldest first, and a number that none of them has.
pub(super) fn find(folder: &Path) -> io::Result<(Vec<Found>, u64)> {
    let mut numbers = Vec::new();
    let mut next = 1;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        // One that was set aside must not be replaced by another.
        let taken = name.strip_suffix(SET_ASIDE).and_then(number);
        next = next.max(taken.map_or(1, |number| number + 1));
        let Some(number) = name.strip_suffix(SUFFIX).and_then(number) else {
            continue;
        };
        if entry.file_type()?.is_file() {
            numbers.push(number);
            next = next.max(number + 1);
        }
    }
    numbers.sort_unstable();
    let found = numbers.into_iter().map(|number| look(folder, number));
    Ok((found.collect::<io::Result<_>>()?, next))
}

fn number(digits: &str) -> Option<u64> {
    let number = digits.parse().ok()?;
    (digits == format!("{number:012}")).then_some(number)
}

fn look(folder: &Path, number: u64) -> io::Result<Found> {
    let mut file = File::open(path(folder, number))?;
    let mut buffer = vec![0; 64 << 10];
    let (mut length, mut lines) = (0, 0);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(Found {
                number,
                length,
                lines,
            });
        }
        length += count as u64;
        lines += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64;
    }
}

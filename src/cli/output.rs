//! Writes to stdout and stderr. What cannot be written to stdout fails the command: its output was wanted.

use std::io::Write as _;

use anyhow::{Context as _, Result};

/// Prints a text and a line end to stdout.
pub(super) fn print(text: &str) -> Result<()> {
    write(format!("{text}\n").as_bytes())
}

/// Writes bytes to stdout as they are.
pub(super) fn write(bytes: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.context("cannot write to stdout")
}

/// Prints a line to stderr. Where that is closed, nobody can be told so.
pub(super) fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

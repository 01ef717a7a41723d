//! The parts of a run: each starts its processes, prints its tables and judges its aims.

pub mod catalog;
pub mod connections;
pub mod latency;
pub mod mebibyte;
pub mod memory;
pub mod pairs;
pub mod sizes;
pub mod start;
pub mod store;
pub mod threads;
pub mod traces;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

/// The options of all parts.
pub struct RunOptions {
    pub directory: TempDir,
    /// The program of the bare proxy that has the gateway's allocator.
    pub bare_mimalloc: PathBuf,
    pub rounds: u16,
    /// The time for each variant in a round.
    pub time: Duration,
    pub connections: u16,
    /// Does everything once and small, to show that it works.
    pub quick: bool,
}

impl RunOptions {
    /// Returns `full` or, in a quick run, `quick`.
    pub fn scaled<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Creates a directory for the files of processes.
    pub fn create_directory(&self, name: &str) -> Result<PathBuf> {
        let directory = self.directory.path().join(name);
        fs::create_dir(&directory)?;
        Ok(directory)
    }
}

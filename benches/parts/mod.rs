//! The parts of a run: each starts what it needs, prints its tables and judges its aims.

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

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

/// What all parts go by.
pub struct Terms {
    pub directory: TempDir,
    /// The program of the bare proxy that has the gateway's allocator.
    pub bare_mimalloc: PathBuf,
    pub rounds: u16,
    /// For each leg in a round.
    pub time: Duration,
    pub connections: u16,
    /// As little as shows that everything works.
    pub quick: bool,
}

impl Terms {
    /// A figure of a whole run, or the one that is enough to try it out.
    pub fn scaled<T>(&self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// A new place for the files of processes.
    pub fn room(&self, name: &str) -> Result<PathBuf> {
        let room = self.directory.path().join(name);
        fs::create_dir(&room)?;
        Ok(room)
    }
}

//! Starts a process that sees one core only, and so takes one worker thread; afterwards it may use all.

use std::fs;

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// This thread, whose cores children inherit.
const SELF: Pid = Pid::from_raw(0);

/// While it is held, what this thread starts counts one core.
pub struct OneCore {
    all: CpuSet,
}

impl OneCore {
    pub fn hold() -> Result<Self> {
        let all = sched_getaffinity(SELF)?;
        let mut one = CpuSet::new();
        let first = (0..CpuSet::count()).find(|&core| all.is_set(core).unwrap_or(false));
        one.set(first.context("there is no core to run on")?)?;
        sched_setaffinity(SELF, &one)?;
        Ok(Self { all })
    }

    /// Lets every thread of a process run wherever this one could before.
    pub fn lift(&self, process: Pid) -> Result<()> {
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            let id = task?.file_name().into_string().ok();
            let id = id.and_then(|id| id.parse().ok()).context("no task")?;
            sched_setaffinity(Pid::from_raw(id), &self.all)?;
        }
        Ok(())
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        sched_setaffinity(SELF, &self.all).expect("cores that there were before");
    }
}

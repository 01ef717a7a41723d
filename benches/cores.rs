//! Restricts a process to one core while it starts, so that it creates one worker thread, and then removes the restriction.

use std::fs;

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The current thread; children inherit its CPU affinity.
const CURRENT: Pid = Pid::from_raw(0);

/// Restricts this thread, and the processes it starts, to one core until it is dropped.
pub struct OneCore {
    original: CpuSet,
}

impl OneCore {
    pub fn restrict() -> Result<Self> {
        let original = sched_getaffinity(CURRENT)?;
        let mut one = CpuSet::new();
        let first = (0..CpuSet::count()).find(|&core| original.is_set(core).unwrap_or(false));
        one.set(first.context("no core to run on")?)?;
        sched_setaffinity(CURRENT, &one)?;
        Ok(Self { original })
    }

    /// Lets every thread of a process run on all cores that this thread could use before.
    pub fn release(&self, process: Pid) -> Result<()> {
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            let id = task?.file_name().into_string().ok();
            let id = id.and_then(|id| id.parse().ok()).context("no task")?;
            sched_setaffinity(Pid::from_raw(id), &self.original)?;
        }
        Ok(())
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        sched_setaffinity(CURRENT, &self.original).expect("the original CPU affinity");
    }
}

//! The identity of a process towards the store.

use jiff::Timestamp;

/// A process with a journal of its own, as other processes know it.
#[derive(Debug, Clone)]
pub struct LeaseHolder {
    pub id: String,
    pub journal: String,
    /// Usage records from before are those of another process.
    pub began: Timestamp,
}

impl LeaseHolder {
    pub(super) fn is_own(&self, at: i64) -> bool {
        at >= self.began.as_millisecond()
    }
}

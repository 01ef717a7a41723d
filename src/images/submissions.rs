//! Image tasks that are being created: they count as queued before the store has them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::task::QueuedTasks;

/// The tasks that each key is creating now.
#[derive(Default)]
pub(super) struct Submissions(Mutex<HashMap<String, CreatedTasks>>);

#[derive(Default, Clone, Copy)]
struct CreatedTasks {
    count: u64,
    bytes: usize,
}

/// One task that is being created, until this is dropped.
pub(super) struct Submission<'s> {
    submissions: &'s Submissions,
    key: &'s str,
    bytes: usize,
}

impl Submissions {
    /// Adds those that are being created.
    pub(super) fn add_to(&self, queued: &mut QueuedTasks, key: &str) {
        let by_key = self.by_key();
        queued.all += by_key.values().map(|created| created.count).sum::<u64>();
        queued.of_key += by_key.get(key).map_or(0, |created| created.count);
    }

    /// The size of those that a key is creating.
    pub(super) fn bytes(&self, key: &str) -> usize {
        self.by_key().get(key).map_or(0, |created| created.bytes)
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<String, CreatedTasks>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'s> Submission<'s> {
    pub(super) fn begin(
        submissions: &'s Submissions,
        key: &'s str,
        bytes: usize,
    ) -> Submission<'s> {
        let mut by_key = submissions.by_key();
        let created = by_key.entry(key.to_owned()).or_default();
        created.count += 1;
        created.bytes += bytes;
        Submission {
            submissions,
            key,
            bytes,
        }
    }
}

impl Drop for Submission<'_> {
    fn drop(&mut self) {
        let mut by_key = self.submissions.by_key();
        if let Some(created) = by_key.get_mut(self.key) {
            created.count -= 1;
            created.bytes -= self.bytes;
            if created.count == 0 {
                by_key.remove(self.key);
            }
        }
    }
}

//! Image tasks that are being created: they count as queued before the store has them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::task::QueuedTasks;

/// How many tasks each key is creating now.
#[derive(Default)]
pub(super) struct Submissions(Mutex<HashMap<String, u64>>);

/// One task that is being created, until this is dropped.
pub(super) struct Submission<'s> {
    submissions: &'s Submissions,
    key: &'s str,
}

impl Submissions {
    /// Adds those that are being created.
    pub(super) fn add_to(&self, queued: &mut QueuedTasks, key: &str) {
        let counts = self.counts();
        queued.all += counts.values().sum::<u64>();
        queued.of_key += counts.get(key).copied().unwrap_or_default();
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'s> Submission<'s> {
    pub(super) fn begin(submissions: &'s Submissions, key: &'s str) -> Submission<'s> {
        *submissions.counts().entry(key.to_owned()).or_default() += 1;
        Submission { submissions, key }
    }
}

impl Drop for Submission<'_> {
    fn drop(&mut self) {
        let mut counts = self.submissions.counts();
        if let Some(count) = counts.get_mut(self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(self.key);
            }
        }
    }
}

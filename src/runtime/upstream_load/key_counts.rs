//! How many requests each key has in flight at an upstream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ahash::RandomState;

type Counts = HashMap<Arc<str>, u64, RandomState>;

/// The requests in flight by key; keys without any are not kept.
#[derive(Default)]
pub(super) struct KeyCounts(Mutex<Counts>);

impl KeyCounts {
    pub(super) fn enter(&self, key: &Arc<str>) {
        *self.counts().entry(key.clone()).or_default() += 1;
    }

    pub(super) fn leave(&self, key: &str) {
        let mut counts = self.counts();
        let Some(count) = counts.get_mut(key) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }

    /// Calls back with what tells the count of a key.
    pub(super) fn look<T>(&self, look: impl FnOnce(&dyn Fn(&str) -> u64) -> T) -> T {
        let counts = self.counts();
        look(&|key| counts.get(key).copied().unwrap_or_default())
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What must outlive a reload, by name: loads, breakers, and what keys have used and spent.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Account, Health, KeyLimiter, UpstreamLoad};

#[derive(Default)]
pub struct RuntimeState {
    loads: Shelf<String>,
    healths: Shelf<(String, String), Health>,
    used: Shelf<String, KeyLimiter>,
    accounts: Shelf<String, Account>,
    calls: Arc<AtomicU64>,
}

/// Things under their names. Snapshots hold what they use; nobody searches here for a request.
struct Shelf<K, T = UpstreamLoad>(Mutex<HashMap<K, Arc<T>>>);

impl<K, T> Default for Shelf<K, T> {
    fn default() -> Shelf<K, T> {
        Shelf(Mutex::default())
    }
}

impl<K: Eq + Hash, T: Default> Shelf<K, T> {
    fn get(&self, key: K) -> Arc<T> {
        let mut things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        things.entry(key).or_default().clone()
    }

    fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Arc<T>>
    where
        K: Borrow<Q>,
    {
        let things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        things.get(key).cloned()
    }

    /// Forgets what only the shelf itself still holds.
    fn tidy(&self) {
        self.tidy_unless(|_| false);
    }

    /// The same, but for what is worth remembering.
    fn tidy_unless(&self, is_worth: impl Fn(&T) -> bool) {
        let mut things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        things.retain(|_, thing| Arc::strong_count(thing) > 1 || is_worth(thing));
    }
}

impl RuntimeState {
    pub(super) fn load(&self, upstream: &str) -> Arc<UpstreamLoad> {
        self.loads.get(upstream.to_owned())
    }

    /// Of one model at one upstream, both by the upstream's names.
    pub(super) fn health(&self, upstream: &str, model: &str) -> Arc<Health> {
        self.healths.get((upstream.to_owned(), model.to_owned()))
    }

    pub(super) fn limiter(&self, key: &str) -> Arc<KeyLimiter> {
        self.used.get(key.to_owned())
    }

    pub(super) fn account(&self, key: &str) -> Arc<Account> {
        self.accounts.get(key.to_owned())
    }

    /// Of a key that is known, if it is.
    pub fn known_account(&self, key: &str) -> Option<Arc<Account>> {
        self.accounts.find(key)
    }

    /// To be called when a snapshot has been replaced.
    pub(super) fn tidy(&self) {
        self.loads.tidy();
        self.healths.tidy();
        self.used.tidy();
        // A key that is taken out and put back has still spent what it has.
        self.accounts.tidy_unless(|account| !account.is_blank());
    }

    /// One more call over all keys, unless there are as many as allowed.
    pub fn call(&self, limit: Option<u64>) -> Option<Call> {
        let limit = limit.unwrap_or(u64::MAX);
        let below = |count: u64| (count < limit).then_some(count + 1);
        self.calls
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below)
            .ok()
            .map(|_| Call(self.calls.clone()))
    }
}

/// One call being served.
#[must_use = "the call counts as ended when this is dropped"]
pub struct Call(Arc<AtomicU64>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

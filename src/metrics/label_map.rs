//! What is counted of one model at one upstream, held together so that a request finds all of it at once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use ahash::RandomState;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::ModelLabels;

/// Metrics of a format; families keep the same ones for whoever scrapes.
pub(super) struct Row {
    pub(super) labels: ModelLabels,
    /// Those that were answered well, which is nearly all.
    pub(super) well: OnceLock<Counter>,
    pub(super) received: Counter,
    pub(super) sent: Counter,
    pub(super) whole: Histogram,
    /// Not there while not one byte was sent.
    pub(super) first_byte: OnceLock<Histogram>,
    /// By the place of the kind among `KINDS`; none that has never been counted.
    pub(super) tokens: [OnceLock<Counter>; KINDS.len()],
    pub(super) estimated: [OnceLock<Counter>; KINDS.len()],
}

pub(super) const KINDS: [&str; 5] = ["input", "cached", "cache_written", "output", "thinking"];

/// Things under two names. What clients make up must never be one of them.
pub(super) struct Named<T>(RwLock<HashMap<Arc<str>, Inner<T>, RandomState>>);

type Inner<T> = HashMap<Arc<str>, T, RandomState>;

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(RwLock::default())
    }
}

impl<T> Named<T> {
    /// Calls `count` with one that is there or is made now. Finding one allocates nothing, and
    /// changes nothing that other threads look at but the lock.
    pub(super) fn with<R>(
        &self,
        (one, other): (&str, &str),
        make: impl FnOnce() -> T,
        count: impl FnOnce(&T) -> R,
    ) -> R {
        // A map of counters is whole after any panic, so a poisoned lock is no reason to stop counting.
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.get(one).and_then(|inner| inner.get(other)) {
            return count(found);
        }
        drop(all);
        let made = make();
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let inner = all.entry(one.into()).or_default();
        count(inner.entry(other.into()).or_insert(made))
    }
}

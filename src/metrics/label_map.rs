//! The metrics of one model at one upstream, together, so that a request finds all of them with one lookup.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use ahash::RandomState;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::labels::ModelLabels;

/// The metrics of a model and upstream in one format; the families share them.
pub(super) struct ModelMetrics {
    pub(super) labels: ModelLabels,
    /// Requests with status 200, which are nearly all.
    pub(super) ok: OnceLock<Counter>,
    pub(super) received: Counter,
    pub(super) sent: Counter,
    pub(super) whole: Histogram,
    /// Set with the first response that has a byte.
    pub(super) first_byte: OnceLock<Histogram>,
    /// Set with the first response of an upstream.
    pub(super) added: OnceLock<Histogram>,
    /// In the order of `TOKEN_KINDS`; set when first counted.
    pub(super) tokens: [OnceLock<Counter>; TOKEN_KINDS.len()],
    pub(super) estimated: [OnceLock<Counter>; TOKEN_KINDS.len()],
}

pub(super) const TOKEN_KINDS: [&str; 5] =
    ["input", "cached", "cache_written", "output", "thinking"];

/// Values by two label values, which must never come from clients unchecked.
pub(super) struct LabelMap<T>(RwLock<HashMap<Arc<str>, ByUpstream<T>, RandomState>>);

type ByUpstream<T> = HashMap<Arc<str>, T, RandomState>;

impl<T> Default for LabelMap<T> {
    fn default() -> LabelMap<T> {
        LabelMap(RwLock::default())
    }
}

impl<T> LabelMap<T> {
    /// Calls `count` with an entry, which is made if it is missing. Finding one allocates nothing.
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

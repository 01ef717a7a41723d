//! The state of the mock: signals that release waiting streams, and counts of requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::Semaphore;

/// What the mock keeps between requests.
#[derive(Default)]
pub(super) struct MockState {
    all: Arc<RequestCounters>,
    named: Mutex<HashMap<String, Arc<RequestCounters>>>,
    signals: Mutex<HashMap<String, Arc<Semaphore>>>,
}

#[derive(Default)]
struct RequestCounters {
    started: AtomicU64,
    finished: AtomicU64,
    cancelled: AtomicU64,
    waiting: AtomicU64,
}

/// Counts of the requests under one name.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct RequestCounts {
    started: u64,
    finished: u64,
    cancelled: u64,
    waiting: u64,
}

/// Counts of all requests since the start.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct RequestTotals {
    requests: u64,
    in_flight: u64,
    finished: u64,
    cancelled: u64,
    waiting: u64,
}

const UNPOISONED: &str = "nothing panics while it holds this lock";

impl MockState {
    /// Starts to count a request.
    pub(super) fn start_request(&self) -> RequestGuard {
        self.all.started.fetch_add(1, Ordering::Relaxed);
        RequestGuard {
            all: Arc::clone(&self.all),
            named: None,
            finished: false,
        }
    }

    /// Counts a request under a name as well, from here on.
    pub(super) fn name(&self, guard: &mut RequestGuard, name: &str) {
        let counters = self.counters(name);
        counters.started.fetch_add(1, Ordering::Relaxed);
        guard.named = Some(counters);
    }

    /// Returns the counts under a name.
    pub(super) fn counts(&self, name: &str) -> RequestCounts {
        self.counters(name).counts()
    }

    /// Returns the counts of all requests.
    pub(super) fn totals(&self) -> RequestTotals {
        let RequestCounts {
            started,
            finished,
            cancelled,
            waiting,
        } = self.all.counts();
        RequestTotals {
            requests: started,
            in_flight: started.saturating_sub(finished + cancelled),
            finished,
            cancelled,
            waiting,
        }
    }

    /// Returns a signal. One permit releases one event, also a later one.
    pub(super) fn signal(&self, name: &str) -> Arc<Semaphore> {
        let mut signals = self.signals.lock().expect(UNPOISONED);
        let signal = signals
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(0)));
        Arc::clone(signal)
    }

    fn counters(&self, name: &str) -> Arc<RequestCounters> {
        let mut named = self.named.lock().expect(UNPOISONED);
        Arc::clone(named.entry(name.to_owned()).or_default())
    }
}

impl RequestCounters {
    fn counts(&self) -> RequestCounts {
        RequestCounts {
            // The ends first: a request that ends meanwhile must not look like one that never began.
            finished: self.finished.load(Ordering::Acquire),
            cancelled: self.cancelled.load(Ordering::Acquire),
            waiting: self.waiting.load(Ordering::Acquire),
            started: self.started.load(Ordering::Acquire),
        }
    }
}

/// Counts a request until the last byte of its response; it was cancelled if dropped before.
pub(super) struct RequestGuard {
    all: Arc<RequestCounters>,
    named: Option<Arc<RequestCounters>>,
    finished: bool,
}

impl RequestGuard {
    /// Counts the request as finished, once.
    pub(super) fn finish(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            for counters in self.counters() {
                counters.finished.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Waits for a permit of a signal.
    pub(super) async fn wait(&self, signal: &Semaphore) {
        let _waiting = WaitingGuard::new(self);
        let permit = signal.acquire().await;
        permit.expect("no signal is ever closed").forget();
    }

    fn counters(&self) -> impl Iterator<Item = &RequestCounters> {
        std::iter::once(&self.all)
            .chain(&self.named)
            .map(AsRef::as_ref)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if !self.finished {
            for counters in self.counters() {
                counters.cancelled.fetch_add(1, Ordering::Release);
            }
        }
    }
}

/// Counts a waiting request while it lives.
struct WaitingGuard<'v>(&'v RequestGuard);

impl<'v> WaitingGuard<'v> {
    fn new(guard: &'v RequestGuard) -> WaitingGuard<'v> {
        for counters in guard.counters() {
            counters.waiting.fetch_add(1, Ordering::Release);
        }
        WaitingGuard(guard)
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        for counters in self.0.counters() {
            counters.waiting.fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_finished_once_or_cancelled() {
        let state = MockState::default();
        let mut done = state.start_request();
        state.name(&mut done, "a");
        done.finish();
        done.finish();
        drop(done);
        let mut left = state.start_request();
        state.name(&mut left, "a");
        assert_eq!(state.totals().in_flight, 1);
        drop(left);
        let seen = state.counts("a");
        assert_eq!((seen.started, seen.finished, seen.cancelled), (2, 1, 1));
        assert_eq!(state.counts("b").started, 0);
        assert_eq!(state.totals().in_flight, 0);
    }

    #[tokio::test]
    async fn early_signals_are_kept() {
        let state = MockState::default();
        let guard = state.start_request();
        state.signal("go").add_permits(2);
        guard.wait(&state.signal("go")).await;
        guard.wait(&state.signal("go")).await;
        assert_eq!(state.signal("go").available_permits(), 0);
        assert_eq!(state.totals().waiting, 0);
    }
}

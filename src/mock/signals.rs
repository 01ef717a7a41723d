//! What tests steer and watch: signals that release waiting streams, and counts of what became of requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::Semaphore;

/// What one mock remembers between requests.
#[derive(Default)]
pub(super) struct Stage {
    all: Arc<Counters>,
    named: Mutex<HashMap<String, Arc<Counters>>>,
    signals: Mutex<HashMap<String, Arc<Semaphore>>>,
}

#[derive(Default)]
struct Counters {
    started: AtomicU64,
    finished: AtomicU64,
    cancelled: AtomicU64,
    waiting: AtomicU64,
}

/// Requests under one name.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct Seen {
    started: u64,
    finished: u64,
    cancelled: u64,
    waiting: u64,
}

/// Requests since the start.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct Totals {
    requests: u64,
    in_flight: u64,
    finished: u64,
    cancelled: u64,
    waiting: u64,
}

const UNPOISONED: &str = "nothing panics while it holds this lock";

impl Stage {
    pub(super) fn enter(&self) -> Visit {
        self.all.started.fetch_add(1, Ordering::Relaxed);
        Visit {
            all: Arc::clone(&self.all),
            named: None,
            finished: false,
        }
    }

    /// From here on the visit also counts under the name.
    pub(super) fn name(&self, visit: &mut Visit, name: &str) {
        let counters = self.counters(name);
        counters.started.fetch_add(1, Ordering::Relaxed);
        visit.named = Some(counters);
    }

    pub(super) fn seen(&self, name: &str) -> Seen {
        self.counters(name).seen()
    }

    pub(super) fn totals(&self) -> Totals {
        let Seen {
            started,
            finished,
            cancelled,
            waiting,
        } = self.all.seen();
        Totals {
            requests: started,
            in_flight: started.saturating_sub(finished + cancelled),
            finished,
            cancelled,
            waiting,
        }
    }

    /// One permit lets one event go; permits that nobody waits for yet are kept.
    pub(super) fn signal(&self, name: &str) -> Arc<Semaphore> {
        let mut signals = self.signals.lock().expect(UNPOISONED);
        let signal = signals
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(0)));
        Arc::clone(signal)
    }

    fn counters(&self, name: &str) -> Arc<Counters> {
        let mut named = self.named.lock().expect(UNPOISONED);
        Arc::clone(named.entry(name.to_owned()).or_default())
    }
}

impl Counters {
    fn seen(&self) -> Seen {
        Seen {
            // Endings first: a request that ends in between must not look like one that never began.
            finished: self.finished.load(Ordering::Acquire),
            cancelled: self.cancelled.load(Ordering::Acquire),
            waiting: self.waiting.load(Ordering::Acquire),
            started: self.started.load(Ordering::Acquire),
        }
    }
}

/// One request, from its head to the last byte of its answer. Dropped before that: cancelled.
pub(super) struct Visit {
    all: Arc<Counters>,
    named: Option<Arc<Counters>>,
    finished: bool,
}

impl Visit {
    pub(super) fn finish(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            for counters in self.counters() {
                counters.finished.fetch_add(1, Ordering::Release);
            }
        }
    }

    pub(super) async fn wait(&self, signal: &Semaphore) {
        let _waiting = Waiting::new(self);
        let permit = signal.acquire().await;
        permit.expect("no signal is ever closed").forget();
    }

    fn counters(&self) -> impl Iterator<Item = &Counters> {
        std::iter::once(&self.all)
            .chain(&self.named)
            .map(AsRef::as_ref)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.finished {
            for counters in self.counters() {
                counters.cancelled.fetch_add(1, Ordering::Release);
            }
        }
    }
}

/// Counts while it lives, also when the wait is given up.
struct Waiting<'v>(&'v Visit);

impl<'v> Waiting<'v> {
    fn new(visit: &'v Visit) -> Waiting<'v> {
        for counters in visit.counters() {
            counters.waiting.fetch_add(1, Ordering::Release);
        }
        Waiting(visit)
    }
}

impl Drop for Waiting<'_> {
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
    fn a_visit_is_finished_once_or_cancelled() {
        let stage = Stage::default();
        let mut done = stage.enter();
        stage.name(&mut done, "a");
        done.finish();
        done.finish();
        drop(done);
        let mut left = stage.enter();
        stage.name(&mut left, "a");
        assert_eq!(stage.totals().in_flight, 1);
        drop(left);
        let seen = stage.seen("a");
        assert_eq!((seen.started, seen.finished, seen.cancelled), (2, 1, 1));
        assert_eq!(stage.seen("b").started, 0);
        assert_eq!(stage.totals().in_flight, 0);
    }

    #[tokio::test]
    async fn signals_given_early_are_kept() {
        let stage = Stage::default();
        let visit = stage.enter();
        stage.signal("go").add_permits(2);
        visit.wait(&stage.signal("go")).await;
        visit.wait(&stage.signal("go")).await;
        assert_eq!(stage.signal("go").available_permits(), 0);
        assert_eq!(stage.totals().waiting, 0);
    }
}

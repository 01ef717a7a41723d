//! What would be said for every request is said now and then.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Seldom {
    every: Duration,
    last: Mutex<Option<Instant>>,
}

impl Seldom {
    pub(super) const fn every(every: Duration) -> Seldom {
        Seldom {
            every,
            last: Mutex::new(None),
        }
    }

    /// Whether it is time to say it.
    pub(super) fn now(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = last.is_none_or(|last| last.elapsed() >= self.every);
        if is_time {
            *last = Some(Instant::now());
        }
        is_time
    }
}

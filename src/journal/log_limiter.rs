//! Limits how often a log line is written.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lets one log line pass per interval.
pub struct LogLimiter {
    interval: Duration,
    last: Mutex<Option<Instant>>,
}

impl LogLimiter {
    pub const fn every(interval: Duration) -> LogLimiter {
        LogLimiter {
            interval,
            last: Mutex::new(None),
        }
    }

    /// Tells whether the line may be logged now, and starts the next interval if so.
    pub fn is_due(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= self.interval);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

//! Token buckets of failed attempts, by whatever they are counted for. They need no lock, and their memory does not
//! depend on who tries how much.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ahash::RandomState;

/// Everybody shares this many buckets. Two who meet in one only slow down each other's failures.
const BUCKETS: usize = 1 << 13;

pub struct AttemptBuckets {
    started: Instant,
    hasher: RandomState,
    /// How many attempts may fail at once.
    burst: u64,
    /// Milliseconds after which one more comes free.
    interval: u64,
    /// When each bucket is full again, in milliseconds since `started`.
    full_at: Box<[AtomicU64]>,
}

impl AttemptBuckets {
    /// `burst` attempts may fail at once, and as many more in a minute.
    pub fn new(burst: u64) -> AttemptBuckets {
        AttemptBuckets::with_interval(burst, Duration::from_millis(60_000 / burst))
    }

    /// `burst` attempts may fail at once, and one more after each interval.
    pub fn with_interval(burst: u64, interval: Duration) -> AttemptBuckets {
        AttemptBuckets {
            interval: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX >> 16),
            started: Instant::now(),
            hasher: RandomState::new(),
            burst,
            full_at: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The time until one more may fail; `None`: it may now.
    pub fn wait(&self, of: impl Hash, now: Instant) -> Option<Duration> {
        let full_at = self.bucket(of).load(Ordering::Relaxed);
        let taken = full_at.saturating_sub(self.milliseconds(now));
        let wait = (taken + self.interval).saturating_sub(self.burst * self.interval);
        (wait > 0).then(|| Duration::from_millis(wait))
    }

    /// Counts a failed attempt.
    pub fn count(&self, of: impl Hash, now: Instant) {
        let now = self.milliseconds(now);
        let interval = self.interval;
        let later = |full_at: u64| Some(full_at.max(now) + interval);
        // It always has a next value.
        let _ = self
            .bucket(of)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }

    fn bucket(&self, of: impl Hash) -> &AtomicU64 {
        let hash = self.hasher.hash_one(of);
        &self.full_at[hash as usize % BUCKETS]
    }

    fn milliseconds(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.started);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

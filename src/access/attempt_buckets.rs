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

    /// Counts a failed attempt. However many come at once, the next one waits for one interval.
    pub fn count(&self, of: impl Hash, now: Instant) {
        let now = self.milliseconds(now);
        let (interval, most) = (self.interval, now + self.burst * self.interval);
        let later = |full_at: u64| Some((full_at.max(now) + interval).min(most));
        // It always has a next value.
        let _ = self
            .bucket(of)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }

    /// Counts an attempt before it is known whether it fails. `Err`: the time until one may begin.
    pub fn take(&self, of: impl Hash, now: Instant) -> Result<(), Duration> {
        let now = self.milliseconds(now);
        let most = now + self.burst * self.interval;
        let later = |full_at: u64| {
            let next = full_at.max(now) + self.interval;
            (next <= most).then_some(next)
        };
        let bucket = self.bucket(of);
        let taken = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        let refused = taken.map(|_| ());
        refused.map_err(|full_at| Duration::from_millis(full_at + self.interval - most))
    }

    /// Gives an attempt back that was taken and has not failed.
    pub fn give_back(&self, of: impl Hash) {
        let earlier = |full_at: u64| Some(full_at.saturating_sub(self.interval));
        let bucket = self.bucket(of);
        // It always has a value before.
        let _ = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, earlier);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_begin_at_once_are_counted_before_they_fail() {
        let buckets = AttemptBuckets::new(10);
        let interval = Duration::from_secs(6);
        let now = Instant::now();
        let taken = (0..200).filter(|_| buckets.take("ada", now).is_ok());
        assert_eq!(taken.count(), 10);
        assert_eq!(buckets.take("ada", now), Err(interval));
        assert_eq!(buckets.take("bob", now), Ok(()));
        // One that succeeds leaves its place to the next.
        buckets.give_back("ada");
        assert_eq!(buckets.take("ada", now), Ok(()));
        assert_eq!(buckets.take("ada", now + interval), Ok(()));
        assert_eq!(buckets.take("ada", now + interval), Err(interval));
    }

    #[test]
    fn many_failures_at_once_are_no_longer_wait_than_a_few() {
        let buckets = AttemptBuckets::new(10);
        let now = Instant::now();
        for _ in 0..200 {
            buckets.count("ada", now);
        }
        assert_eq!(buckets.wait("ada", now), Some(Duration::from_secs(6)));
        let minute = now + Duration::from_secs(60);
        let taken = (0..200).filter(|_| buckets.take("ada", minute).is_ok());
        assert_eq!(taken.count(), 10);
    }
}

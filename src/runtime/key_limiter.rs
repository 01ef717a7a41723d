//! The rate limiter of a key: token buckets for requests and tokens per minute, and a limit of concurrent requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Limits;
use crate::model::{RateLimit, RateLimitStatus};

const MINUTE: f64 = 60.0;

/// Tracks how much of a key's limits is used. Outlives reloads.
#[derive(Default)]
pub struct KeyLimiter {
    buckets: Mutex<Buckets>,
    in_flight: AtomicU64,
}

#[derive(Default)]
struct Buckets {
    requests: Bucket,
    tokens: Bucket,
}

/// A token bucket, as the amount that is taken and not yet refilled.
#[derive(Default, Clone, Copy)]
struct Bucket {
    /// May exceed the limit: the tokens of a response are known only at its end.
    taken: f64,
    refilled_at: Option<Instant>,
}

/// Which limit is reached, and when to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    Requests(Duration),
    Tokens(Duration),
    Concurrency,
}

/// One request of a key being served; it counts towards the concurrency limit until it is dropped.
#[must_use = "the request counts as ended when this is dropped"]
pub struct KeyPermit(Arc<KeyLimiter>);

impl Drop for KeyPermit {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl KeyLimiter {
    /// Admits one request, or returns the limit that is reached. A refused request takes nothing.
    pub fn admit(
        self: &Arc<KeyLimiter>,
        limits: &Limits,
        now: Instant,
    ) -> Result<KeyPermit, LimitReached> {
        let max_in_flight = limits.concurrency.unwrap_or(u64::MAX);
        let below = |count: u64| (count < max_in_flight).then_some(count + 1);
        self.in_flight
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below)
            .map_err(|_| LimitReached::Concurrency)?;
        let permit = KeyPermit(self.clone());
        self.admit_rates(limits, now)?;
        Ok(permit)
    }

    /// Admits one request by the limits per minute alone.
    pub fn admit_rates(&self, limits: &Limits, now: Instant) -> Result<(), LimitReached> {
        if limits.requests_per_minute.is_none() && limits.tokens_per_minute.is_none() {
            return Ok(());
        }
        let mut buckets = self.buckets();
        if let Some(limit) = limits.tokens_per_minute {
            let wait = buckets.tokens.wait_for(1.0, limit, now);
            wait.map_or(Ok(()), |wait| Err(LimitReached::Tokens(wait)))?;
        }
        buckets.count_request(limits, now)
    }

    /// Counts one request that is not served by an upstream, or returns that too many came in this minute.
    pub fn count_request(&self, limits: &Limits, now: Instant) -> Result<(), LimitReached> {
        self.buckets().count_request(limits, now)
    }

    /// Counts a request that was admitted by the shared limits.
    pub fn admit_unchecked(self: &Arc<KeyLimiter>) -> KeyPermit {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        KeyPermit(self.clone())
    }

    /// Sets both buckets to what all processes together have taken.
    pub fn set_taken(&self, requests: f64, tokens: f64, now: Instant) {
        let taken = |taken: f64| Bucket {
            taken,
            refilled_at: Some(now),
        };
        *self.buckets() = Buckets {
            requests: taken(requests),
            tokens: taken(tokens),
        };
    }

    /// Sets the bucket of requests to what all processes together have taken.
    pub fn set_taken_requests(&self, requests: f64, now: Instant) {
        self.buckets().requests = Bucket {
            taken: requests,
            refilled_at: Some(now),
        };
    }

    /// Takes the tokens of a response from the bucket.
    pub fn charge_tokens(&self, limits: &Limits, tokens: u64, now: Instant) {
        if let Some(limit) = limits.tokens_per_minute {
            let mut buckets = self.buckets();
            buckets.tokens.refill(limit, now);
            buckets.tokens.taken += tokens as f64;
        }
    }

    /// The state of the limits for the rate limit headers of a response.
    pub fn rate_limit_status(&self, limits: &Limits, now: Instant) -> RateLimitStatus {
        if limits.requests_per_minute.is_none() && limits.tokens_per_minute.is_none() {
            return RateLimitStatus::default();
        }
        let mut buckets = self.buckets();
        RateLimitStatus {
            requests: limits
                .requests_per_minute
                .map(|limit| buckets.requests.rate(limit, now)),
            tokens: limits
                .tokens_per_minute
                .map(|limit| buckets.tokens.rate(limit, now)),
        }
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    fn buckets(&self) -> MutexGuard<'_, Buckets> {
        // Nothing can panic while it is held; if it did, the counts are still counts.
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buckets {
    fn count_request(&mut self, limits: &Limits, now: Instant) -> Result<(), LimitReached> {
        if let Some(limit) = limits.requests_per_minute {
            let wait = self.requests.wait_for(1.0, limit, now);
            wait.map_or(Ok(()), |wait| Err(LimitReached::Requests(wait)))?;
            self.requests.taken += 1.0;
        }
        Ok(())
    }
}

impl Bucket {
    /// Refills the bucket for the time since the last call.
    fn refill(&mut self, limit: u64, now: Instant) {
        let since = self.refilled_at.map(|at| now.saturating_duration_since(at));
        let earned = since.unwrap_or_default().as_secs_f64() * limit as f64 / MINUTE;
        self.taken = (self.taken - earned).max(0.0);
        self.refilled_at = Some(self.refilled_at.map_or(now, |at| at.max(now)));
    }

    /// The time until this amount is available; `None`: it is.
    fn wait_for(&mut self, amount: f64, limit: u64, now: Instant) -> Option<Duration> {
        self.refill(limit, now);
        let missing = self.taken + amount - limit as f64;
        (missing > 0.0).then(|| Duration::from_secs_f64(missing * MINUTE / limit as f64))
    }

    fn rate(&mut self, limit: u64, now: Instant) -> RateLimit {
        self.refill(limit, now);
        let left = limit as f64 - self.taken;
        RateLimit {
            limit,
            remaining: left.max(0.0) as u64,
            reset: Duration::from_secs_f64(self.taken * MINUTE / limit as f64),
        }
    }
}

#[cfg(test)]
mod tests;

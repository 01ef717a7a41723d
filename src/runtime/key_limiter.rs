//! What a key may still do: requests and tokens a minute as buckets that fill up again, and requests at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Limits;
use crate::model::{RateLimit, RateLimitStatus};

const MINUTE: f64 = 60.0;

/// How much of a key's limits is used up. Outlives reloads.
#[derive(Default)]
pub struct KeyLimiter {
    buckets: Mutex<Buckets>,
    at_once: AtomicU64,
}

#[derive(Default)]
struct Buckets {
    requests: Bucket,
    tokens: Bucket,
}

/// What has been taken and has not yet come back.
#[derive(Default, Clone, Copy)]
struct Bucket {
    /// May be more than the limit: what a reply costs is known at its end.
    taken: f64,
    at: Option<Instant>,
}

/// Which limit is reached, and when it is worth asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    Requests(Duration),
    Tokens(Duration),
    Concurrency,
}

/// One request of a key being served.
#[must_use = "the place is given back when this is dropped"]
pub struct KeyPermit(Arc<KeyLimiter>);

impl Drop for KeyPermit {
    fn drop(&mut self) {
        self.0.at_once.fetch_sub(1, Ordering::AcqRel);
    }
}

impl KeyLimiter {
    /// Admits one request, or says what stands against it. Nothing is taken from a refused one.
    pub fn admit(
        self: &Arc<KeyLimiter>,
        limits: &Limits,
        now: Instant,
    ) -> Result<KeyPermit, LimitReached> {
        let at_once = limits.concurrency.unwrap_or(u64::MAX);
        let below = |count: u64| (count < at_once).then_some(count + 1);
        self.at_once
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below)
            .map_err(|_| LimitReached::Concurrency)?;
        let permit = KeyPermit(self.clone());
        if limits.requests_per_minute.is_none() && limits.tokens_per_minute.is_none() {
            return Ok(permit);
        }
        let mut buckets = self.buckets();
        if let Some(limit) = limits.tokens_per_minute {
            let wait = buckets.tokens.wait_for(1.0, limit, now);
            wait.map_or(Ok(()), |wait| Err(LimitReached::Tokens(wait)))?;
        }
        if let Some(limit) = limits.requests_per_minute {
            let wait = buckets.requests.wait_for(1.0, limit, now);
            wait.map_or(Ok(()), |wait| Err(LimitReached::Requests(wait)))?;
            buckets.requests.taken += 1.0;
        }
        Ok(permit)
    }

    /// One request that was admitted elsewhere.
    pub fn enter(self: &Arc<KeyLimiter>) -> KeyPermit {
        self.at_once.fetch_add(1, Ordering::AcqRel);
        KeyPermit(self.clone())
    }

    /// What several processes together have taken of both limits.
    pub fn adopt(&self, requests: f64, tokens: f64, now: Instant) {
        let taken = |taken: f64| Bucket {
            taken,
            at: Some(now),
        };
        *self.buckets() = Buckets {
            requests: taken(requests),
            tokens: taken(tokens),
        };
    }

    /// What a reply has cost, once that is known.
    pub fn charge_tokens(&self, limits: &Limits, tokens: u64, now: Instant) {
        if let Some(limit) = limits.tokens_per_minute {
            let mut buckets = self.buckets();
            buckets.tokens.settle(limit, now);
            buckets.tokens.taken += tokens as f64;
        }
    }

    /// For the headers of a reply.
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

    pub fn at_once(&self) -> u64 {
        self.at_once.load(Ordering::Relaxed)
    }

    fn buckets(&self) -> MutexGuard<'_, Buckets> {
        // Nothing can panic while it is held; if it did, the counts are still counts.
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket {
    /// Gives back what the time since the last look has earned.
    fn settle(&mut self, limit: u64, now: Instant) {
        let since = self.at.map(|at| now.saturating_duration_since(at));
        let earned = since.unwrap_or_default().as_secs_f64() * limit as f64 / MINUTE;
        self.taken = (self.taken - earned).max(0.0);
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
    }

    /// How long until this much is free; `None`: it is.
    fn wait_for(&mut self, amount: f64, limit: u64, now: Instant) -> Option<Duration> {
        self.settle(limit, now);
        let missing = self.taken + amount - limit as f64;
        (missing > 0.0).then(|| Duration::from_secs_f64(missing * MINUTE / limit as f64))
    }

    fn rate(&mut self, limit: u64, now: Instant) -> RateLimit {
        self.settle(limit, now);
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

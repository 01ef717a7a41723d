//! The rate limits of a key, which each format reports in headers of its own.

use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimitStatus {
    pub requests: Option<RateLimit>,
    pub tokens: Option<RateLimit>,
}

/// A limit per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pub limit: u64,
    pub remaining: u64,
    /// Time until the limit is fully available again.
    pub reset: Duration,
}

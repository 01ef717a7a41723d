//! What a caller may still ask for; each format has headers of its own for it.

use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimitStatus {
    pub requests: Option<RateLimit>,
    pub tokens: Option<RateLimit>,
}

/// One limit per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pub limit: u64,
    pub remaining: u64,
    /// Until all of it is there again.
    pub reset: Duration,
}

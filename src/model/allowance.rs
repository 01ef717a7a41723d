//! What a caller may still ask for; each format has headers of its own for it.

use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    pub requests: Option<Rate>,
    pub tokens: Option<Rate>,
}

/// One limit per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub limit: u64,
    pub remaining: u64,
    /// Until all of it is there again.
    pub reset: Duration,
}

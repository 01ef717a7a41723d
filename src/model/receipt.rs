//! What is written down of a request that has been paid for.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Money, Usage};

/// Its names are shared with what has them for as long as it runs: one is made for every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The request's own, unique for ever: nothing is counted twice by it.
    pub id: String,
    /// When it ended, in milliseconds since 1970.
    pub at: i64,
    /// By name.
    pub key: Arc<str>,
    /// The id that the client asked for.
    pub model: Arc<str>,
    pub upstream: Arc<str>,
    /// The word for what the client speaks.
    pub format: Cow<'static, str>,
    pub stream: bool,
    pub status: u16,
    pub usage: Usage,
    /// Pictures that were made.
    pub images: u64,
    /// Some of the usage is not the upstream's own count.
    pub estimated: bool,
    pub cost: Money,
}

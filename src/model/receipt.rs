//! What is written down of a request that has been paid for.

use super::{Money, Usage};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The request's own, unique for ever: nothing is counted twice by it.
    pub id: String,
    /// When it ended, in milliseconds since 1970.
    pub at: i64,
    /// By name.
    pub key: String,
    /// The id that the client asked for.
    pub model: String,
    pub upstream: String,
    /// The word for what the client speaks.
    pub format: String,
    pub stream: bool,
    pub status: u16,
    pub usage: Usage,
    /// Pictures that were made.
    pub images: u64,
    /// Some of the usage is not the upstream's own count.
    pub estimated: bool,
    pub cost: Money,
}

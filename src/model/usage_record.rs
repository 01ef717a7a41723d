//! What is written down of a request that has been paid for.

use std::borrow::Cow;

use super::{Money, Usage};

/// Its texts are lent by what has them: one is made for every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord<'a> {
    /// The request's own, unique for ever: nothing is counted twice by it.
    pub id: Cow<'a, str>,
    /// When it ended, in milliseconds since 1970.
    pub at: i64,
    /// By name.
    pub key: Cow<'a, str>,
    /// The id that the client asked for.
    pub model: Cow<'a, str>,
    pub upstream: Cow<'a, str>,
    /// The word for what the client speaks.
    pub format: Cow<'a, str>,
    pub stream: bool,
    pub status: u16,
    pub usage: Usage,
    /// Images that were made.
    pub images: u64,
    /// Some of the usage is not the upstream's own count.
    pub estimated: bool,
    pub cost: Money,
}

impl UsageRecord<'_> {
    /// With texts of its own.
    pub fn into_owned(self) -> UsageRecord<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        UsageRecord {
            id: owned(self.id),
            key: owned(self.key),
            model: owned(self.model),
            upstream: owned(self.upstream),
            format: owned(self.format),
            at: self.at,
            stream: self.stream,
            status: self.status,
            usage: self.usage,
            images: self.images,
            estimated: self.estimated,
            cost: self.cost,
        }
    }
}

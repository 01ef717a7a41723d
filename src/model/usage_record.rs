//! The usage record of a request that has ended.

use std::borrow::Cow;

use super::{Money, Usage};

/// The usage and cost of one request. Its texts are borrowed, as one is made for every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord<'a> {
    /// The id of the request, by which no record is counted twice.
    pub id: Cow<'a, str>,
    /// The end of the request, in milliseconds since 1970.
    pub at: i64,
    /// The id of the key, which no other key ever has. Empty in records of version 0.1.
    pub key_id: Cow<'a, str>,
    /// The name of the key.
    pub key: Cow<'a, str>,
    /// The model id of the request.
    pub model: Cow<'a, str>,
    pub upstream: Cow<'a, str>,
    /// The name of the client's format.
    pub format: Cow<'a, str>,
    pub stream: bool,
    pub status: u16,
    pub usage: Usage,
    /// The number of generated images.
    pub images: u64,
    /// Some of the usage is estimated by the gateway.
    pub estimated: bool,
    pub cost: Money,
}

impl UsageRecord<'_> {
    /// The same record with owned texts.
    pub fn into_owned(self) -> UsageRecord<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        UsageRecord {
            id: owned(self.id),
            key_id: owned(self.key_id),
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

//! The usage record of a request that has ended.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

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
    pub details: UsageDetails<'a>,
}

/// What explains a cost: the prices in force, times, the attempts before the last one, and losses. All of it is empty in
/// records of version 0.1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageDetails<'a> {
    /// The prices in force, such as `input=1.25 output=10`; empty: the model has none.
    pub prices: Cow<'a, str>,
    /// How long the response took where time has a price, in milliseconds like all times here.
    pub priced: u64,
    /// How long the recording is, where its minutes have a price.
    pub audio: u64,
    /// How long the client waited for all of the response, and for its first byte.
    pub took: u64,
    pub first_byte: u64,
    pub upstream_format: Cow<'a, str>,
    /// The attempts before the last one, as a JSON array; empty: there was one attempt.
    pub earlier: Cow<'a, str>,
    /// The paths of what the upstream's format could not express, and of what was adjusted for it.
    pub dropped: Cow<'a, str>,
    pub adjusted: Cow<'a, str>,
}

/// An attempt that failed, and that another one followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierAttempt {
    pub upstream: String,
    /// The kind of the error, as in the access log.
    pub error: String,
    #[serde(rename = "ms")]
    pub milliseconds: u64,
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
            details: self.details.into_owned(),
        }
    }
}

impl UsageDetails<'_> {
    /// The attempts before the last one.
    pub fn earlier_attempts(&self) -> Vec<EarlierAttempt> {
        serde_json::from_str(&self.earlier).unwrap_or_default()
    }

    /// The paths of what the upstream's format could not express.
    pub fn dropped_paths(&self) -> impl Iterator<Item = &str> {
        paths(&self.dropped)
    }

    /// The paths of what was adjusted or added for the upstream.
    pub fn adjusted_paths(&self) -> impl Iterator<Item = &str> {
        paths(&self.adjusted)
    }

    fn into_owned(self) -> UsageDetails<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        UsageDetails {
            prices: owned(self.prices),
            upstream_format: owned(self.upstream_format),
            earlier: owned(self.earlier),
            dropped: owned(self.dropped),
            adjusted: owned(self.adjusted),
            priced: self.priced,
            audio: self.audio,
            took: self.took,
            first_byte: self.first_byte,
        }
    }
}

fn paths(list: &str) -> impl Iterator<Item = &str> {
    list.split(", ").filter(|path| !path.is_empty())
}

//! A change of a key, and how the audit log words it.

use super::spending::Periods;
use crate::config::Reset;
use crate::model::Money;

/// A change of a key; `None`: unchanged, `Some(None)`: removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyChange {
    pub account: Option<String>,
    pub spending_cap: Option<Option<Money>>,
    pub reset: Option<Reset>,
    pub models: Option<Option<Vec<String>>>,
    pub requests_per_minute: Option<Option<u64>>,
    pub tokens_per_minute: Option<Option<u64>>,
    pub concurrency: Option<Option<u64>>,
    /// In milliseconds since 1970.
    pub expires: Option<Option<i64>>,
}

impl KeyChange {
    /// The change in the words of the audit log.
    pub fn describe(&self) -> String {
        let or_none =
            |count: Option<u64>| count.map_or("none".to_owned(), |count| count.to_string());
        let mut words = Vec::new();
        words.extend(self.account.as_ref().map(|name| format!("account {name}")));
        words.extend(self.spending_cap.map(|cap| match cap {
            Some(cap) => format!("cap {cap}"),
            None => "unlimited quota".to_owned(),
        }));
        words.extend(self.reset.map(|reset| format!("reset {}", reset.word())));
        words.extend(self.models.as_ref().map(|models| match models {
            Some(globs) => format!("models {}", globs.join(" ")),
            None => "models all".to_owned(),
        }));
        for (name, limit) in [
            ("rpm", self.requests_per_minute),
            ("tpm", self.tokens_per_minute),
            ("concurrency", self.concurrency),
        ] {
            words.extend(limit.map(|count| format!("{name} {}", or_none(count))));
        }
        words.extend(self.expires.map(|expires| match expires {
            Some(expires) => format!("expires {}", Periods::of(expires).day),
            None => "expires never".to_owned(),
        }));
        words.join(", ")
    }
}

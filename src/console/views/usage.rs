//! Usage, added up by day, model and key.

use serde::Serialize;

use super::Decimal;
use crate::store::UsageSum;

/// What was used in some days.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct UsageView {
    /// Null: all accounts.
    pub account: Option<String>,
    /// The days of UTC; both are part of it.
    pub from: String,
    pub until: String,
    pub total: UsageSumView,
    /// Every day, also without usage.
    pub days: Vec<NamedUsage>,
    /// The most expensive first, here and below.
    pub models: Vec<NamedUsage>,
    pub keys: Vec<NamedUsage>,
}

/// The usage of a day, a model or a key.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct NamedUsage {
    pub name: String,
    #[serde(flatten)]
    pub sum: UsageSumView,
}

/// The usage of some requests.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct UsageSumView {
    pub requests: u64,
    /// Of these, those whose usage the gateway has estimated.
    pub estimated: u64,
    /// Tokens, as below.
    pub input: u64,
    /// Of the input.
    pub cached: u64,
    /// Of the input.
    pub cache_written: u64,
    pub output: u64,
    /// Of the output.
    pub thinking: u64,
    pub images: u64,
    #[cfg_attr(test, schema(value_type = f64))]
    pub cost: Decimal,
}

impl From<UsageSum> for UsageSumView {
    fn from(sum: UsageSum) -> UsageSumView {
        UsageSumView {
            requests: sum.requests,
            estimated: sum.estimated,
            input: sum.input,
            cached: sum.cached,
            cache_written: sum.cache_written,
            output: sum.output,
            thinking: sum.thinking,
            images: sum.images,
            cost: Decimal(sum.cost),
        }
    }
}

impl UsageSumView {
    pub const fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

//! Requests and their bills.

use std::fmt;

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use super::{Decimal, Moment};
use crate::model::{Money, UsageRecord};
use crate::runtime::{Bill, BillLine, PriceUnit};

/// Some requests, the newest first.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct RequestsView {
    /// The days of UTC; both are part of it.
    pub from: String,
    pub until: String,
    pub requests: Vec<RequestLineView>,
    /// The `after` of the next page; null: this is the last one.
    pub next: Option<String>,
}

/// A request that used tokens or cost something.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct RequestLineView {
    pub id: String,
    /// When it ended.
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub time: Moment,
    /// The name of the key.
    pub key: String,
    pub model: String,
    pub upstream: String,
    /// The format of the client.
    pub format: String,
    pub stream: bool,
    pub status: u16,
    /// Tokens, as below.
    pub input: u64,
    pub output: u64,
    /// Some of the usage is estimated by the gateway.
    pub estimated: bool,
    #[cfg_attr(test, schema(value_type = f64))]
    pub cost: Decimal,
    /// Null: it was not recorded.
    pub took_ms: Option<u64>,
}

impl From<&UsageRecord<'_>> for RequestLineView {
    fn from(record: &UsageRecord<'_>) -> RequestLineView {
        RequestLineView {
            id: record.id.to_string(),
            time: Moment(record.at),
            key: record.key.to_string(),
            model: record.model.to_string(),
            upstream: record.upstream.to_string(),
            format: record.format.to_string(),
            stream: record.stream,
            status: record.status,
            input: record.usage.input,
            output: record.usage.output,
            estimated: record.estimated,
            cost: Decimal(record.cost),
            took_ms: recorded(record.details.took),
        }
    }
}

/// A request with its bill.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct RequestView {
    #[serde(flatten)]
    pub request: RequestLineView,
    pub upstream_format: String,
    /// Of the input.
    pub cached: u64,
    /// Of the input.
    pub cache_written: u64,
    /// Of the output.
    pub thinking: u64,
    pub images: u64,
    /// Null: it was not recorded.
    pub first_byte_ms: Option<u64>,
    pub bill: BillView,
    /// In their order; the last one answered.
    pub attempts: Vec<AttemptView>,
    /// The paths of what the upstream's format could not express.
    pub dropped: Vec<String>,
    /// The paths of what was adjusted or added for the upstream.
    pub adjusted: Vec<String>,
}

/// The lines add up to the total, to the digit.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct BillView {
    /// The prices in force, such as `input=1.25 output=10`; null: there were none, or they were not recorded.
    pub prices: Option<String>,
    pub lines: Vec<BillLineView>,
    /// What the lines do not explain: earlier attempts at other prices, or an amount that was reserved for a usage that could
    /// not be read.
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub difference: Option<Difference>,
    #[cfg_attr(test, schema(value_type = f64))]
    pub total: Decimal,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct BillLineView {
    /// The name of the price in the config.
    pub item: &'static str,
    /// Tokens, requests, or milliseconds of what is priced by time.
    pub count: u64,
    /// `million_tokens`, `request`, `second` or `minute`.
    pub unit: &'static str,
    /// For one unit.
    #[cfg_attr(test, schema(value_type = f64))]
    pub price: Decimal,
    #[cfg_attr(test, schema(value_type = f64))]
    pub amount: Decimal,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AttemptView {
    pub upstream: String,
    /// Why it failed; null: it answered.
    pub error: Option<String>,
    /// Null: it was not recorded.
    pub ms: Option<u64>,
}

/// What is added to the lines of a bill, or taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    pub amount: Money,
    pub is_taken_off: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_taken_off { "-" } else { "" };
        write!(out, "{sign}{}", self.amount)
    }
}

impl Serialize for Difference {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.to_string()).map_err(S::Error::custom)?;
        number.serialize(out)
    }
}

/// A time of zero was not recorded.
fn recorded(milliseconds: u64) -> Option<u64> {
    Some(milliseconds).filter(|milliseconds| *milliseconds > 0)
}

impl From<&BillLine> for BillLineView {
    fn from(line: &BillLine) -> BillLineView {
        BillLineView {
            item: line.item,
            count: line.count,
            unit: match line.unit {
                PriceUnit::MillionTokens => "million_tokens",
                PriceUnit::Request => "request",
                PriceUnit::Second => "second",
                PriceUnit::Minute => "minute",
            },
            price: Decimal(line.price),
            amount: Decimal(line.amount),
        }
    }
}

impl From<&UsageRecord<'_>> for BillView {
    fn from(record: &UsageRecord<'_>) -> BillView {
        let Bill {
            lines,
            added,
            taken_off,
        } = Bill::of(record);
        let is_taken_off = !taken_off.is_zero();
        let amount = if is_taken_off { taken_off } else { added };
        let difference = (!amount.is_zero()).then_some(Difference {
            amount,
            is_taken_off,
        });
        let prices = record.details.prices.to_string();
        BillView {
            prices: Some(prices).filter(|prices| !prices.is_empty()),
            lines: lines.iter().map(BillLineView::from).collect(),
            difference,
            total: Decimal(record.cost),
        }
    }
}

impl From<&UsageRecord<'_>> for RequestView {
    fn from(record: &UsageRecord<'_>) -> RequestView {
        let (usage, details) = (&record.usage, &record.details);
        RequestView {
            request: RequestLineView::from(record),
            upstream_format: details.upstream_format.to_string(),
            cached: usage.cached,
            cache_written: usage.cache_written,
            thinking: usage.thinking,
            images: record.images,
            first_byte_ms: recorded(details.first_byte),
            bill: BillView::from(record),
            attempts: attempts(record),
            dropped: details.dropped_paths().map(str::to_owned).collect(),
            adjusted: details.adjusted_paths().map(str::to_owned).collect(),
        }
    }
}

/// The attempts before the last one, and that one, which has the rest of the time.
fn attempts(record: &UsageRecord<'_>) -> Vec<AttemptView> {
    let details = &record.details;
    let earlier = details.earlier_attempts();
    let before: u64 = earlier.iter().map(|attempt| attempt.milliseconds).sum();
    let earlier = earlier.into_iter().map(|attempt| AttemptView {
        upstream: attempt.upstream,
        error: Some(attempt.error),
        ms: Some(attempt.milliseconds),
    });
    let last = AttemptView {
        upstream: record.upstream.to_string(),
        error: None,
        ms: recorded(details.took.saturating_sub(before)),
    };
    earlier.chain([last]).collect()
}

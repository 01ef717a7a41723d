//! `GET /api/requests/{id}`: what a request cost and why, for whoever holds its key.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{ApiError, ApiErrorKind, EarlierAttempt, Money, UsageRecord, truncated};
use crate::proxy::context::RequestContext;
use crate::proxy::gateway::Gateway;
use crate::runtime::{Bill, BillLine};

#[derive(Serialize)]
struct OwnRequest<'a> {
    id: &'a str,
    time: String,
    model: &'a str,
    format: &'a str,
    upstream: &'a str,
    upstream_format: &'a str,
    stream: bool,
    status: u16,
    input: u64,
    cached: u64,
    cache_written: u64,
    output: u64,
    thinking: u64,
    images: u64,
    estimated: bool,
    took_ms: u64,
    first_byte_ms: u64,
    /// The prices in force.
    prices: &'a str,
    bill: Vec<OwnBillLine>,
    /// What the lines do not explain.
    difference: Option<Box<RawValue>>,
    cost: Option<Box<RawValue>>,
    /// The attempts before the one that answered.
    earlier_attempts: Vec<EarlierAttempt>,
    dropped: Vec<&'a str>,
    adjusted: Vec<&'a str>,
}

#[derive(Serialize)]
struct OwnBillLine {
    item: &'static str,
    count: u64,
    price: Option<Box<RawValue>>,
    amount: Option<Box<RawValue>>,
}

impl Gateway {
    /// The body of the response. A request of another key does not exist.
    pub(in crate::proxy) async fn own_request(
        &self,
        ctx: &RequestContext,
        id: &str,
    ) -> Result<Vec<u8>, ApiError> {
        let failed = |kind, message: &str| ApiError::new(kind, message);
        let Some(store) = &self.store else {
            let message = "requests are only recorded with a store, and the config has none";
            return Err(failed(ApiErrorKind::NotFound, message));
        };
        let owner = ctx.client.owner();
        let found = store.query(owner, store.request(id)).await;
        let found = found.map_err(|_| {
            let message = "the store does not answer; try again";
            failed(ApiErrorKind::Overloaded, message)
        })?;
        let is_own =
            |record: &UsageRecord<'_>| ctx.client.key().is_some() && record.key_id == owner;
        let Some(record) = found.filter(is_own) else {
            let id = truncated(id);
            let message = format!(
                "this key has no record of a request `{id}`; that of a request that has just ended follows within a second"
            );
            return Err(failed(ApiErrorKind::NotFound, &message));
        };
        let described = serde_json::to_vec(&OwnRequest::of(&record));
        described.map_err(|_| failed(ApiErrorKind::Internal, "the gateway failed"))
    }
}

impl OwnRequest<'_> {
    fn of<'a>(record: &'a UsageRecord<'_>) -> OwnRequest<'a> {
        let (usage, details) = (&record.usage, &record.details);
        let bill = Bill::of(record);
        let difference = match bill.taken_off.is_zero() {
            true => number(bill.added).filter(|_| !bill.added.is_zero()),
            false => RawValue::from_string(format!("-{}", bill.taken_off)).ok(),
        };
        let time = Timestamp::from_millisecond(record.at).unwrap_or_default();
        OwnRequest {
            id: &record.id,
            time: time.to_string(),
            model: &record.model,
            format: &record.format,
            upstream: &record.upstream,
            upstream_format: &details.upstream_format,
            stream: record.stream,
            status: record.status,
            input: usage.input,
            cached: usage.cached,
            cache_written: usage.cache_written,
            output: usage.output,
            thinking: usage.thinking,
            images: record.images,
            estimated: record.estimated,
            took_ms: details.took,
            first_byte_ms: details.first_byte,
            prices: &details.prices,
            bill: bill.lines.iter().map(OwnBillLine::from).collect(),
            difference,
            cost: number(record.cost),
            earlier_attempts: details.earlier_attempts(),
            dropped: details.dropped_paths().collect(),
            adjusted: details.adjusted_paths().collect(),
        }
    }
}

impl From<&BillLine> for OwnBillLine {
    fn from(line: &BillLine) -> OwnBillLine {
        OwnBillLine {
            item: line.item,
            count: line.count,
            price: number(line.price),
            amount: number(line.amount),
        }
    }
}

/// A JSON number with all digits, which no float has.
fn number(amount: Money) -> Option<Box<RawValue>> {
    RawValue::from_string(amount.to_string()).ok()
}

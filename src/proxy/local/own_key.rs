//! `GET /api/key`: what a key may spend, has spent and has left, for whoever holds it.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{ApiError, ApiErrorKind, Money, Spending};
use crate::proxy::context::RequestContext;
use crate::proxy::gateway::Gateway;
use crate::runtime::{CappedAccount, Key, in_period, period_end};

#[derive(Serialize)]
struct OwnKey<'a> {
    name: &'a str,
    unlimited_quota: bool,
    spending_cap: Option<Box<RawValue>>,
    reset: &'static str,
    resets_at: Option<String>,
    /// In the period of the cap.
    spent: Option<Box<RawValue>>,
    /// Reserved for requests in flight.
    held: Option<Box<RawValue>>,
    /// Neither spent nor held.
    left: Option<Box<RawValue>>,
    limits: OwnLimits,
    /// The cap of the account that the key belongs to, which holds above the key's own.
    account: Option<OwnAccount<'a>>,
}

#[derive(Serialize)]
struct OwnAccount<'a> {
    name: &'a str,
    spending_cap: Option<Box<RawValue>>,
    reset: &'static str,
    resets_at: Option<String>,
    spent: Option<Box<RawValue>>,
    held: Option<Box<RawValue>>,
    left: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct OwnLimits {
    requests_per_minute: Option<u64>,
    tokens_per_minute: Option<u64>,
    concurrency: Option<u64>,
}

impl Gateway {
    /// The body of the response, for the key of the request. Other processes may have spent of the same cap: the store knows.
    pub(in crate::proxy) async fn own_key(
        &self,
        ctx: &RequestContext,
    ) -> Result<Vec<u8>, ApiError> {
        let failed = || ApiError::new(ApiErrorKind::Internal, "the gateway failed");
        let key = ctx.client.key().ok_or_else(failed)?;
        let now = Timestamp::now();
        let recorded = match &self.store {
            Some(store) => {
                // Nothing is subtracted of what was recorded until now.
                let spending = store.spending(Some(&key.id), Timestamp::MAX, now);
                // A store that is away leaves what this process knows.
                store.query(&key.id, spending).await.unwrap_or_default()
            }
            None => HashMap::new(),
        };
        let recorded = recorded.get(&*key.id).copied().unwrap_or_default();
        let described = OwnKey::of(key, &recorded, now);
        serde_json::to_vec(&described).map_err(|_| failed())
    }
}

impl OwnKey<'_> {
    fn of<'k>(key: &'k Key, recorded: &Spending, now: Timestamp) -> OwnKey<'k> {
        let reset = key.cap.map_or_else(Default::default, |cap| cap.reset);
        let spent = key
            .account
            .spent(reset, now)
            .max(in_period(recorded, reset));
        let held = key.account.reserved();
        let left = key.cap.map(|cap| {
            let left = cap.amount.saturating_sub(spent);
            left.saturating_sub(held)
        });
        OwnKey {
            name: &key.name,
            unlimited_quota: key.cap.is_none(),
            spending_cap: key.cap.and_then(|cap| number(cap.amount)),
            reset: reset.word(),
            resets_at: period_end(reset, now).map(|end| end.to_string()),
            spent: number(spent),
            held: number(held),
            left: left.and_then(number),
            limits: OwnLimits {
                requests_per_minute: key.limits.requests_per_minute,
                tokens_per_minute: key.limits.tokens_per_minute,
                concurrency: key.limits.concurrency,
            },
            account: key.owner_cap().map(|owner| OwnAccount::of(owner, now)),
        }
    }
}

impl OwnAccount<'_> {
    fn of(owner: CappedAccount<'_>, now: Timestamp) -> OwnAccount<'_> {
        let cap = owner.cap;
        let spent = owner.account.spent(cap.reset, now);
        let held = owner.account.reserved();
        let left = cap.amount.saturating_sub(spent).saturating_sub(held);
        OwnAccount {
            name: owner.name,
            spending_cap: number(cap.amount),
            reset: cap.reset.word(),
            resets_at: period_end(cap.reset, now).map(|end| end.to_string()),
            spent: number(spent),
            held: number(held),
            left: number(left),
        }
    }
}

/// A JSON number with all digits, which no float has.
fn number(amount: Money) -> Option<Box<RawValue>> {
    RawValue::from_string(amount.to_string()).ok()
}

//! Checks the limits of a key, and those of the gateway as a whole.

use std::time::Instant;

use super::errors::{RETRY_SOON, retry_after};
use super::shared_limits::{SharedLimits, SharedPermit};
use crate::config::Limits;
use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::{GlobalPermit, Key, KeyPermit, LimitReached, Runtime, Snapshot};

/// The permits of a request; they are released when it is dropped.
pub struct Admission {
    _global: Option<GlobalPermit>,
    _key: Option<KeyPermit>,
    shared: Option<SharedPermit>,
}

impl Admission {
    /// Notes the tokens of the response; other gateways learn them when the request ends.
    pub fn charge(&self, tokens: u64) {
        if let Some(shared) = &self.shared {
            shared.charge(tokens);
        }
    }
}

/// Admits a request, or returns the error of the limit that is reached.
pub fn admit(runtime: &Runtime, snapshot: &Snapshot, key: &Key) -> Result<Admission, ApiError> {
    let global = admit_globally(runtime, snapshot, key)?;
    let permit = key
        .limiter
        .admit(&key.limits, Instant::now())
        .map_err(|reached| limit_error(&reached, key))?;
    Ok(Admission {
        _global: Some(global),
        _key: Some(permit),
        shared: None,
    })
}

/// Admits a request whose limits are shared with other gateways.
pub async fn admit_shared(
    limits: &SharedLimits,
    runtime: &Runtime,
    snapshot: &Snapshot,
    key: &Key,
) -> Result<Admission, ApiError> {
    let global = admit_globally(runtime, snapshot, key)?;
    let admitted = limits.admit(key).await;
    let (permit, shared) = admitted.map_err(|reached| limit_error(&reached, key))?;
    Ok(Admission {
        _global: Some(global),
        _key: Some(permit),
        shared: Some(shared),
    })
}

/// Counts a request that is answered without an upstream: it takes one of the key's requests per minute, and
/// nothing else.
pub async fn count_request(limits: Option<&SharedLimits>, key: &Key) -> Result<(), ApiError> {
    if key.limits.requests_per_minute.is_none() {
        return Ok(());
    }
    let counted = match limits {
        Some(limits) => Box::pin(limits.count_request(key)).await,
        None => key.limiter.count_request(&key.limits, Instant::now()),
    };
    counted.map_err(|reached| limit_error(&reached, key))
}

/// Admits a request for what the key has stored: it takes one of the places of all keys, but none of the key's own
/// requests at once, which may all be taken by the image tasks that are asked for.
pub fn admit_reading(
    runtime: &Runtime,
    snapshot: &Snapshot,
    key: &Key,
) -> Result<Admission, ApiError> {
    Ok(Admission {
        _global: Some(admit_globally(runtime, snapshot, key)?),
        _key: None,
        shared: None,
    })
}

/// One of the requests that a key may have at once; it is free again when this is dropped.
#[derive(Default)]
pub struct ConcurrencyPermit {
    _key: Option<KeyPermit>,
    _shared: Option<SharedPermit>,
}

/// Takes one of the requests that a key may have at once, and nothing of its other limits.
pub async fn acquire_slot(
    limits: Option<&SharedLimits>,
    key: &Key,
) -> Result<ConcurrencyPermit, ApiError> {
    let concurrency = Limits {
        concurrency: key.limits.concurrency,
        ..Limits::default()
    };
    if concurrency.concurrency.is_none() {
        return Ok(ConcurrencyPermit::default());
    }
    let acquired = match limits {
        Some(limits) => {
            let acquired = limits.acquire_slot(key, concurrency).await;
            acquired.map(|(permit, shared)| (permit, Some(shared)))
        }
        None => {
            let permit = key.limiter.admit(&concurrency, Instant::now());
            permit.map(|permit| (permit, None))
        }
    };
    let (permit, shared) = acquired.map_err(|reached| limit_error(&reached, key))?;
    Ok(ConcurrencyPermit {
        _key: Some(permit),
        _shared: shared,
    })
}

/// Admits an image request, which may be a task: whether it needs one of the requests at once is known only
/// when its body is read.
pub async fn admit_image(
    limits: Option<&SharedLimits>,
    runtime: &Runtime,
    snapshot: &Snapshot,
    key: &Key,
) -> Result<Admission, ApiError> {
    let global = admit_globally(runtime, snapshot, key)?;
    let rates = Limits {
        concurrency: None,
        ..key.limits
    };
    let admitted = match limits {
        Some(limits) => limits.admit_rates(key, rates).await.map(Some),
        None => {
            let rated = key.limiter.admit_rates(&rates, Instant::now());
            rated.map(|()| None)
        }
    };
    let shared = admitted.map_err(|reached| limit_error(&reached, key))?;
    Ok(Admission {
        _global: Some(global),
        _key: None,
        shared,
    })
}

/// Admits the request of an image task, which was counted when it was created and when it started; only its
/// usage is added.
pub fn admit_task(limits: &SharedLimits, key: &Key) -> Admission {
    Admission {
        _global: None,
        _key: None,
        shared: Some(limits.permit_unchecked(key)),
    }
}

fn admit_globally(
    runtime: &Runtime,
    snapshot: &Snapshot,
    key: &Key,
) -> Result<GlobalPermit, ApiError> {
    let limit = snapshot.server.max_in_flight;
    let permit = runtime.state.admit(limit, &key.share, Instant::now());
    permit.ok_or_else(|| {
        let message = "the gateway is serving as many requests as it may; try again";
        retry_after(ApiError::new(ApiErrorKind::Overloaded, message), RETRY_SOON)
    })
}

fn limit_error(reached: &LimitReached, key: &Key) -> ApiError {
    let (limit, unit, wait) = match reached {
        LimitReached::Requests(wait) => {
            (key.limits.requests_per_minute, "requests per minute", *wait)
        }
        LimitReached::Tokens(wait) => (key.limits.tokens_per_minute, "tokens per minute", *wait),
        LimitReached::Concurrency => (key.limits.concurrency, "requests at once", RETRY_SOON),
    };
    let limit = limit.unwrap_or_default();
    let message = format!("this API key has reached its limit of {limit} {unit}");
    retry_after(ApiError::new(ApiErrorKind::RateLimited, message), wait)
}

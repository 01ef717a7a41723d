//! May this request go on now? The limits of its key, and of the gateway as a whole.

use std::time::{Duration, Instant};

use super::shared::{SharedLimits, SharedPermit};
use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::{Call, Key, KeyPermit, LimitReached, Runtime, Snapshot};

/// Places that others hold come free at any time.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Held while a call is served; everything is given back when it is dropped.
pub struct Admission {
    _call: Option<Call>,
    _permit: Option<KeyPermit>,
    shared: Option<SharedPermit>,
}

impl Admission {
    /// What its reply has cost; other gateways hear of it when it ends.
    pub fn charge(&self, tokens: u64) {
        if let Some(shared) = &self.shared {
            shared.charge(tokens);
        }
    }
}

pub fn admit(runtime: &Runtime, snapshot: &Snapshot, key: &Key) -> Result<Admission, ApiError> {
    let call = call(runtime, snapshot)?;
    let permit = key
        .limiter
        .admit(&key.limits, Instant::now())
        .map_err(|reached| refused(&reached, key))?;
    Ok(Admission {
        _call: Some(call),
        _permit: Some(permit),
        shared: None,
    })
}

/// The same where other gateways serve the key too.
pub async fn admit_shared(
    limits: &SharedLimits,
    runtime: &Runtime,
    snapshot: &Snapshot,
    key: &Key,
) -> Result<Admission, ApiError> {
    let call = call(runtime, snapshot)?;
    let admitted = limits.admit(key).await;
    let (permit, shared) = admitted.map_err(|reached| refused(&reached, key))?;
    Ok(Admission {
        _call: Some(call),
        _permit: Some(permit),
        shared: Some(shared),
    })
}

/// Of a task, which has been counted when it was handed in: what it uses is not known before now.
pub fn admit_task(limits: &SharedLimits, key: &Key) -> Admission {
    Admission {
        _call: None,
        _permit: None,
        shared: Some(limits.unasked(key)),
    }
}

fn call(runtime: &Runtime, snapshot: &Snapshot) -> Result<Call, ApiError> {
    let call = runtime.state.call(snapshot.server.max_in_flight);
    call.ok_or_else(|| {
        let message = "the gateway is serving as many requests as it may; try again";
        again_after(ApiError::new(ApiErrorKind::Overloaded, message), ASK_AGAIN)
    })
}

fn refused(reached: &LimitReached, key: &Key) -> ApiError {
    let (limit, unit, wait) = match reached {
        LimitReached::Requests(wait) => {
            (key.limits.requests_per_minute, "requests per minute", *wait)
        }
        LimitReached::Tokens(wait) => (key.limits.tokens_per_minute, "tokens per minute", *wait),
        LimitReached::Concurrency => (key.limits.concurrency, "requests at once", ASK_AGAIN),
    };
    let limit = limit.unwrap_or_default();
    let message = format!("this API key has reached its limit of {limit} {unit}");
    again_after(ApiError::new(ApiErrorKind::RateLimited, message), wait)
}

pub(super) fn again_after(mut api_error: ApiError, wait: Duration) -> ApiError {
    api_error.retry_after = Some(wait);
    api_error
}

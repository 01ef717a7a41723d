//! What an attempt's outcome means for the next one: whether it is made, where, and after which pause.

use std::pin::pin;
use std::time::Duration;

use super::Session;
use pingora_core::{Error, ErrorType, Result};
use rand::RngExt as _;
use tokio::time::{Instant, sleep};

use super::Gateway;
use super::context::RequestContext;
use super::drive::{is_downstream, unless_gone};
use crate::metrics::FailureCause;
use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::{QueueError, UpstreamPermit};

/// A client that is told to come back later waits better than one that is kept.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Every pause doubles the one before, but not for ever.
const DOUBLINGS: usize = 6;

const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Whether another upstream may do better with the same request.
pub(super) const fn may_be_better_elsewhere(kind: ApiErrorKind) -> bool {
    matches!(
        kind,
        ApiErrorKind::RateLimited
            | ApiErrorKind::OverQuota
            | ApiErrorKind::Internal
            | ApiErrorKind::BadGateway
            | ApiErrorKind::Overloaded
            | ApiErrorKind::Timeout
    )
}

impl Gateway {
    /// The upstream of this attempt has failed: counted, and remembered against it.
    pub(super) fn upstream_failed(
        &self,
        exchange: &mut RequestContext,
        cause: FailureCause,
        api_error: &ApiError,
    ) {
        exchange.troubled = true;
        let Some(attempt) = exchange.attempt() else {
            return;
        };
        let name = &attempt.upstream.name;
        self.metrics.upstream_failed(name, cause);
        let now = std::time::Instant::now();
        if let Some(pause) = api_error.retry_after {
            attempt.health.cool_down(pause, now);
            if api_error.kind == ApiErrorKind::RateLimited {
                return;
            }
        }
        let Some(breaker) = &attempt.upstream.breaker else {
            return;
        };
        if let Some(pause) = attempt.health.failed(breaker, now) {
            let model = &attempt.model;
            log::warn!("upstream {name}: {model} keeps failing and is left alone for {pause:?}");
        }
    }

    /// The attempt is over, and nothing of it was the upstream's error.
    pub(super) fn upstream_served(&self, exchange: &RequestContext) {
        let Some(attempt) = exchange.attempt().filter(|_| !exchange.troubled) else {
            return;
        };
        if attempt.health.succeeded(std::time::Instant::now()) {
            let (name, model) = (&attempt.upstream.name, &attempt.model);
            log::info!("upstream {name}: {model} works again");
        }
    }

    /// A place among the requests that the upstream gets at once.
    pub(super) async fn enter_upstream(
        &self,
        session: &mut Session,
        exchange: &mut RequestContext,
    ) -> Result<UpstreamPermit> {
        let attempt = exchange.attempt();
        let attempt = attempt.ok_or_else(super::drive::no_attempt)?;
        if let Some(place) = attempt
            .upstream
            .load
            .try_acquire(&attempt.upstream.concurrency)
        {
            return Ok(place);
        }
        let upstream = &attempt.upstream.clone();
        let entering = async { Ok(upstream.load.acquire(&upstream.concurrency).await) };
        let full = match unless_gone(session, exchange.deadline(), pin!(entering)).await {
            Ok(Ok(place)) => return Ok(place),
            Ok(Err(full)) => full,
            Err(error) if is_downstream(&error) => return Err(error),
            // The time of the attempt is up before that of the queue.
            Err(_) => QueueError::TimedOut,
        };
        let reason = match full {
            QueueError::Full => "and no more may wait",
            QueueError::TimedOut => "and the wait was too long",
        };
        let mut api_error = ApiError::new(
            ApiErrorKind::Overloaded,
            format!("the upstream is serving as many requests as it may, {reason}"),
        );
        api_error.retry_after = Some(ASK_AGAIN);
        self.metrics
            .upstream_failed(&upstream.name, FailureCause::Full);
        exchange.troubled = true;
        Err(self.park(exchange, api_error))
    }

    /// Waits before an upstream is asked again; `false`: it is not worth it.
    pub(super) async fn pause(
        &self,
        session: &mut Session,
        exchange: &mut RequestContext,
    ) -> Result<bool> {
        let Some(pause) = pause_before_next(exchange) else {
            return Ok(true);
        };
        let left = exchange
            .give_up
            .map(|at| at.saturating_duration_since(Instant::now()));
        if pause > left.unwrap_or(LONGEST_PAUSE) {
            return Ok(false);
        }
        let sleeping = async {
            sleep(pause).await;
            Ok(())
        };
        unless_gone(session, None, pin!(sleeping)).await?;
        Ok(true)
    }
}

/// Nothing where the next upstream has not been asked yet.
fn pause_before_next(exchange: &RequestContext) -> Option<Duration> {
    let next = exchange.attempts.get(exchange.tried)?;
    let earlier = exchange.attempts[..exchange.tried].iter();
    let times = earlier.filter(|tried| tried.is_same_as(next)).count();
    let doublings = times.checked_sub(1)?.min(DOUBLINGS);
    let retries = &exchange.model.as_ref()?.settings.retries;
    let backoff = retries.backoff * (1 << doublings);
    // Clients that failed together must not come back together.
    let backoff = backoff.mul_f64(rand::rng().random_range(0.5..=1.0));
    let asked_for = next.health.cool_down_left(std::time::Instant::now());
    Some(backoff.max(asked_for))
}

/// The error of a step that took longer than the attempt, or the request, may take.
pub(super) fn too_late() -> Box<Error> {
    Error::explain(ErrorType::Custom(TOO_LATE), "the attempt took too long").into_up()
}

pub(super) const TOO_LATE: &str = "TooLate";

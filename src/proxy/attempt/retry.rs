//! What a failed attempt means: for its upstream, for the client, and for the next attempt.

use std::pin::pin;
use std::time::{Duration, Instant};

use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::Session;
use rand::RngExt as _;
use tokio::time::sleep;

use crate::config::UpstreamTimeouts;
use crate::metrics::FailureCause;
use crate::model::{ApiError, ApiErrorKind};
use crate::proxy::context::RequestContext;
use crate::proxy::gateway::Gateway;
use crate::proxy::timer::{DEADLINE_EXCEEDED, is_downstream, unless_gone};
use crate::proxy::upstream::decompress::UNREADABLE_BODY;
use crate::proxy::upstream::redact;
use crate::runtime::{QueueError, UpstreamPermit};

/// A longer backoff is left to the client, which is told when to come back.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// How often the backoff doubles at most.
const MAX_DOUBLINGS: usize = 6;

/// When a client should come back to an upstream whose queue is full.
const QUEUE_RETRY_AFTER: Duration = Duration::from_secs(1);

impl Gateway {
    /// Counts a failure of the current upstream, and remembers it against it.
    pub(in crate::proxy) fn upstream_failed(
        &self,
        ctx: &mut RequestContext,
        cause: FailureCause,
        api_error: &ApiError,
    ) {
        ctx.attempt.set_failed();
        let Some(attempt) = ctx.route.current() else {
            return;
        };
        let name = &attempt.upstream.name;
        self.metrics.upstream_failed(name, cause);
        let now = Instant::now();
        if let Some(pause) = api_error.retry_after {
            attempt.health.cool_down(pause, now);
            if api_error.kind == ApiErrorKind::RateLimited {
                return;
            }
        }
        let Some(breaker) = &attempt.upstream.breaker else {
            return;
        };
        if let Some(pause) = attempt.health.record_failure(breaker, now) {
            let (id, model) = (ctx.client.request_id(), &attempt.model);
            log::warn!(
                "{id}: upstream {name}: the circuit breaker of {model} is open for {pause:?}"
            );
        }
    }

    /// Notes that the attempt is over, and that its upstream did not fail.
    pub(in crate::proxy) fn upstream_succeeded(&self, ctx: &RequestContext) {
        let Some(attempt) = ctx.route.current().filter(|_| !ctx.attempt.has_failed()) else {
            return;
        };
        if attempt.health.record_success(Instant::now()) {
            let (name, model) = (&attempt.upstream.name, &attempt.model);
            let id = ctx.client.request_id();
            log::info!("{id}: upstream {name}: the circuit breaker of {model} is closed again");
        }
    }

    /// A connection could not be made: another address of the same upstream may be reachable.
    pub(in crate::proxy) fn connect_failed(
        &self,
        error: Box<Error>,
        ctx: &mut RequestContext,
    ) -> Box<Error> {
        use ErrorType::*;
        let is_unreachable = matches!(
            error.etype(),
            ConnectRefused | ConnectNoRoute | ConnectTimedout | ConnectError | SocketError
        );
        if is_unreachable && let Some(address) = ctx.attempt.try_next_address() {
            let (id, name) = (ctx.client.request_id(), ctx.route.upstream_name());
            log::info!("{id}: upstream {name}: {error}; trying {address}");
            return error;
        }
        self.attempt_failed(error, ctx)
    }

    /// Gives the failure of an attempt its meaning, once.
    pub(in crate::proxy) fn attempt_failed(
        &self,
        mut error: Box<Error>,
        ctx: &mut RequestContext,
    ) -> Box<Error> {
        if is_downstream(&error) {
            error.set_retry(false);
            return error;
        }
        if ctx.response.has_error() {
            return error;
        }
        let Some(attempt) = ctx.route.current().cloned() else {
            error.set_retry(false);
            return error;
        };
        let (api_error, cause) = meaning(&error, &attempt.timeouts);
        let (id, name) = (ctx.client.request_id(), &attempt.upstream.name);
        // What an unreadable header holds may name an account: it is not for the log.
        match error.etype() {
            ErrorType::InvalidHTTPHeader => {
                log::warn!("{id}: upstream {name}: unreadable header");
            }
            _ => {
                let text = error.to_string();
                let text = redact::redact_log(&attempt.upstream, &text);
                log::warn!("{id}: upstream {name}: {text}");
            }
        }
        self.upstream_failed(ctx, cause, &api_error);
        ctx.set_error(api_error)
    }

    /// A permit for one of the requests that the upstream gets at once; waits in its queue if need be.
    pub(in crate::proxy) async fn acquire_permit(
        &self,
        session: &mut Session,
        ctx: &mut RequestContext,
    ) -> Result<UpstreamPermit> {
        let Some(attempt) = ctx.route.current() else {
            return Error::e_explain(ErrorType::InternalError, "no attempt is under way");
        };
        let key = ctx.client.key().map(|key| key.owner_id.clone());
        let key = key.unwrap_or_else(|| "".into());
        let upstream = &attempt.upstream;
        if let Some(permit) = upstream.load.try_acquire(&upstream.concurrency, &key) {
            return Ok(permit);
        }
        let upstream = &upstream.clone();
        let queued = async { Ok(upstream.load.acquire(&upstream.concurrency, &key).await) };
        let refused = match unless_gone(session, ctx.deadline(), pin!(queued)).await {
            Ok(Ok(permit)) => return Ok(permit),
            Ok(Err(refused)) => refused,
            Err(error) if is_downstream(&error) => return Err(error),
            // The time of the attempt is up before that of the queue.
            Err(_) => QueueError::TimedOut,
        };
        let reason = match refused {
            QueueError::Full => "and no more may wait",
            QueueError::TimedOut => "and the wait was too long",
        };
        let mut api_error = ApiError::new(
            ApiErrorKind::Overloaded,
            format!("the upstream is serving as many requests as it may, {reason}"),
        );
        api_error.retry_after = Some(QUEUE_RETRY_AFTER);
        self.metrics
            .upstream_failed(&upstream.name, FailureCause::Full);
        ctx.attempt.set_failed();
        Err(ctx.set_error(api_error))
    }

    /// Waits before an upstream is asked again; `false`: the wait would be too long.
    pub(in crate::proxy) async fn back_off(
        &self,
        session: &mut Session,
        ctx: &mut RequestContext,
    ) -> Result<bool> {
        let Some(pause) = backoff(ctx) else {
            return Ok(true);
        };
        let left = ctx.route.retry_deadline();
        let left = left.map(|at| at.saturating_duration_since(tokio::time::Instant::now()));
        if pause > left.unwrap_or(MAX_BACKOFF) {
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

/// How long to wait before the next attempt; `None` where its upstream has not been asked yet.
fn backoff(ctx: &RequestContext) -> Option<Duration> {
    let next = ctx.route.next()?;
    let earlier = ctx.route.started().iter();
    let times = earlier.filter(|tried| tried.is_same_as(next)).count();
    let doublings = times.checked_sub(1)?.min(MAX_DOUBLINGS);
    let retries = &ctx.route.model()?.settings.retries;
    let backoff = retries.backoff * (1 << doublings);
    // Clients that failed together must not come back together.
    let backoff = backoff.mul_f64(rand::rng().random_range(0.5..=1.0));
    let cool_down = next.health.cool_down_left(Instant::now());
    Some(backoff.max(cool_down))
}

/// What an error on the way to, or from, an upstream means; details stay in the log.
fn meaning(error: &Error, timeouts: &UpstreamTimeouts) -> (ApiError, FailureCause) {
    use ErrorType::*;
    let timeout = |message: String| {
        let api_error = ApiError::new(ApiErrorKind::Timeout, message);
        (api_error, FailureCause::Timeout)
    };
    match error.etype() {
        ConnectTimedout | TLSHandshakeTimedout => timeout(format!(
            "the upstream did not accept a connection within {:?}",
            timeouts.connect
        )),
        ReadTimedout => timeout(format!(
            "the upstream was silent for too long (first_byte {}, idle {})",
            shown(timeouts.first_byte),
            shown(timeouts.idle)
        )),
        Custom(DEADLINE_EXCEEDED) => timeout("the upstream took too long".to_owned()),
        WriteTimedout => timeout("the upstream did not take the request in time".to_owned()),
        TLSHandshakeFailure | InvalidCert | HandshakeError => (
            ApiError::bad_gateway("no secure connection to the upstream could be made"),
            FailureCause::Tls,
        ),
        ConnectRefused | ConnectNoRoute | ConnectError | BindError | ConnectProxyFailure
        | SocketError => (
            ApiError::bad_gateway("the upstream cannot be reached"),
            FailureCause::Connect,
        ),
        Custom(UNREADABLE_BODY) => (
            ApiError::bad_gateway("the upstream's response body cannot be decompressed"),
            FailureCause::Malformed,
        ),
        InvalidHTTPHeader => (
            ApiError::bad_gateway("the upstream's response header is malformed"),
            FailureCause::Malformed,
        ),
        _ => (
            ApiError::bad_gateway("the connection to the upstream broke"),
            FailureCause::Reset,
        ),
    }
}

fn shown(timeout: Option<Duration>) -> String {
    timeout.map_or_else(|| "off".to_owned(), |timeout| format!("{timeout:?}"))
}

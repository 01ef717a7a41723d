//! The state of one request, from its header to its last byte, in five parts: client, route,
//! attempt, response and billing. A sixth is there where traces are made.

mod attempt;
mod billing;
mod client;
pub(super) mod loss_paths;
mod response;
mod route;
mod spans;

use std::sync::Arc;

use pingora_core::{Error, ErrorType};
use tokio::time::Instant;

use attempt::AttemptState;
use billing::BillingState;
use response::ResponseState;
use route::RouteState;
use spans::AttemptResponse;

pub(super) use billing::{RESERVED_TIME, RequestCost};
pub(super) use client::ClientState;
pub(super) use spans::{AttemptSpan, RequestSpans, SpanContent};

use super::capture::CaptureRecorder;
use super::conversation::conversation_store::ConversationScope;
use super::timer::ReusableTimer;
use super::upstream::redact;
use crate::journal::Journal;
use crate::metrics::{InFlight, Metrics};
use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::Snapshot;

/// What pingora hands to every hook.
pub struct RequestContext {
    /// Taken once, so that a reload never changes a request halfway.
    pub(in crate::proxy) snapshot: Arc<Snapshot>,
    pub(in crate::proxy) client: ClientState,
    pub(in crate::proxy) route: RouteState,
    pub(in crate::proxy) attempt: AttemptState,
    pub(in crate::proxy) response: ResponseState,
    pub(in crate::proxy) billing: BillingState,
    /// The trace of the request; `None`: no traces are made.
    pub(in crate::proxy) spans: Option<Box<RequestSpans>>,
    /// `None`: the request is not inspected.
    pub(in crate::proxy) capture: Option<Box<CaptureRecorder>>,
    /// One timer per connection; it is here while the request runs.
    pub(in crate::proxy) timer: ReusableTimer,
    in_flight: Option<InFlight>,
}

impl RequestContext {
    pub(in crate::proxy) fn new(
        snapshot: Arc<Snapshot>,
        metrics: Arc<Metrics>,
        journal: Option<Arc<Journal>>,
        timer: ReusableTimer,
    ) -> RequestContext {
        let now = std::time::Instant::now();
        RequestContext {
            snapshot,
            client: ClientState::new(now),
            route: RouteState::default(),
            attempt: AttemptState::default(),
            response: ResponseState::new(now),
            in_flight: Some(metrics.in_flight()),
            billing: BillingState::new(metrics, journal),
            spans: None,
            capture: None,
            timer,
        }
    }

    /// Logs that a hook runs, at the level `trace`.
    pub(in crate::proxy) fn trace(&self, hook: &str) {
        log::trace!(target: "omniglot::hooks", "{} {hook}", self.client.request_id());
    }

    /// Keeps the request counted as in flight for longer than this context lives.
    pub(in crate::proxy) fn take_in_flight(&mut self) -> Option<InFlight> {
        self.in_flight.take()
    }

    /// Whose stored conversations this request may continue.
    pub(in crate::proxy) fn conversation_scope(&self) -> ConversationScope<'_> {
        ConversationScope {
            owner: self.client.owner(),
            format: self.client.format(),
            limit: self.snapshot.server.body_limit,
            has_place: false,
        }
    }

    /// Starts the next attempt of the route.
    pub(in crate::proxy) fn start_attempt(&mut self) {
        let now = Instant::now();
        if let Some(started) = self.attempt.started() {
            let error = self.response.pending_error();
            self.route.note_failed(error, now - started);
        }
        self.route.start_next();
        let first_content = self.route.per_attempt_timeout().map(|limit| now + limit);
        let first_content = first_content
            .into_iter()
            .chain(self.route.retry_deadline())
            .min();
        let total = self.route.current().and_then(|attempt| {
            let prices = attempt.settings.prices;
            let is_paid = self.billing.is_reserved() && prices.is_some_and(|it| it.charges_time());
            // No more time is reserved.
            let reserved = is_paid.then_some(RESERVED_TIME);
            attempt.timeouts.total.or(reserved)
        });
        let total = total.map(|limit| now + limit);
        self.attempt.start(now, first_content, total);
        self.response.reset();
        if let Some(spans) = &mut self.spans {
            spans.start_attempt(self.route.current());
        }
        if let (Some(capture), Some(attempt)) = (&mut self.capture, self.route.current()) {
            capture.start_attempt(attempt);
        }
    }

    /// Notes for the trace and the inspection how the attempt under way has ended.
    pub(in crate::proxy) fn end_attempt(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.end_attempt(self.response.pending_error());
        }
        let Some(span) = self.spans.as_mut().and_then(|spans| spans.current()) else {
            return;
        };
        span.ended = Some(std::time::Instant::now());
        span.error = self.response.pending_error();
        span.first_chunk = self.response.upstream_wait();
        if let Some(translator) = &self.response.translator {
            let observer = translator.observer();
            span.response = AttemptResponse::new(observer);
            let passed = observer.api_error.as_ref().map(|error| error.kind);
            span.error = span.error.or(passed);
        }
    }

    /// The error that the client got, also one that has passed to it inside a stream of its own format.
    pub(in crate::proxy) fn error_kind(&self) -> Option<ApiErrorKind> {
        let translator = self.response.translator.as_ref();
        let translator = translator.filter(|_| self.route.current().is_some());
        let passed = || translator?.observer().api_error.as_ref();
        let own = self.response.error_kind();
        own.or_else(|| passed().map(|error| error.kind))
    }

    /// Whether the request is traced, so that details of its response are kept.
    pub(in crate::proxy) fn is_sampled(&self) -> bool {
        let spans = self.spans.as_ref();
        spans.is_some_and(|spans| spans.context.is_sampled)
    }

    /// When the attempt under way has to be over.
    pub(in crate::proxy) fn deadline(&self) -> Option<Instant> {
        self.attempt.deadline(self.response.header_sent())
    }

    /// Whether another attempt can follow: nothing has been sent, the client is there, and time and upstreams are left.
    pub(in crate::proxy) fn may_retry(&self) -> bool {
        let in_time = |at: Instant| Instant::now() < at;
        !self.response.header_sent()
            && !self.client.has_left()
            && self.route.next().is_some()
            && self.route.retry_deadline().is_none_or(in_time)
    }

    /// Takes the current attempt back, whose request cannot be sent; another upstream may get it.
    pub(in crate::proxy) fn withdraw_attempt(&mut self, api_error: ApiError) -> Box<Error> {
        self.route.withdraw_attempt();
        if let Some(spans) = &mut self.spans {
            spans.withdraw_attempt();
        }
        let mut error = self.set_error(api_error);
        error.set_retry(self.may_retry());
        error
    }

    /// Notes how long the upstream has taken, as long as the client has nothing of the response.
    pub(in crate::proxy) fn note_upstream_wait(&mut self) {
        if let Some(sent_at) = self
            .attempt
            .sent_at()
            .filter(|_| !self.response.header_sent())
        {
            self.response.set_upstream_wait(sent_at.elapsed());
        }
    }

    /// Keeps an error for `fail_to_proxy`. The returned error says whether another attempt may follow.
    pub(in crate::proxy) fn set_error(&mut self, mut api_error: ApiError) -> Box<Error> {
        if let Some(attempt) = self.route.current() {
            redact::redact_error(&attempt.upstream, &mut api_error);
        }
        let status = ErrorType::HTTPStatus(api_error.status);
        let mut error = Error::explain(status, api_error.message.clone());
        let is_first = self.route.tried() == 0;
        error.set_retry(!is_first && self.may_retry() && is_retryable(api_error.kind));
        self.response.set_error(api_error);
        error
    }
}

/// Whether another upstream may do better with the same request.
pub(in crate::proxy) const fn is_retryable(kind: ApiErrorKind) -> bool {
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

//! The trace's part of a request: the trace that it belongs to, and how its attempts went.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName};
use smallvec::SmallVec;

use crate::formats::ResponseObserver;
use crate::model::{ApiErrorKind, Usage};
use crate::runtime::Attempt;
use crate::telemetry::{SpanId, TRACEPARENT, TRACESTATE, TraceContext, new_span_id};

/// The trace of a request. Of one that is not sampled only the ids are known, which upstreams are told.
pub(in crate::proxy) struct RequestSpans {
    pub(in crate::proxy) context: TraceContext,
    /// The client wants its trace to be sampled.
    is_asked: bool,
    pub(in crate::proxy) attempts: Vec<AttemptSpan>,
    /// `None`: content is not kept.
    pub(in crate::proxy) content: Option<Box<SpanContent>>,
}

/// What a request asks and is answered, cut to a length.
pub(in crate::proxy) struct SpanContent {
    pub(in crate::proxy) input: Option<String>,
    pub(in crate::proxy) system: Option<String>,
    /// The first bytes of the response of the attempt under way.
    pub(in crate::proxy) received: Vec<u8>,
}

/// One attempt at one upstream.
pub(in crate::proxy) struct AttemptSpan {
    pub(in crate::proxy) id: SpanId,
    pub(in crate::proxy) attempt: Attempt,
    pub(in crate::proxy) started: Instant,
    /// `None`: it is under way.
    pub(in crate::proxy) ended: Option<Instant>,
    pub(in crate::proxy) error: Option<ApiErrorKind>,
    pub(in crate::proxy) first_chunk: Option<Duration>,
    pub(in crate::proxy) response: AttemptResponse,
}

/// What is known of the response to an attempt.
#[derive(Default)]
pub(in crate::proxy) struct AttemptResponse {
    pub(in crate::proxy) model: Option<String>,
    pub(in crate::proxy) finish_reasons: SmallVec<[&'static str; 1]>,
    /// As the upstream has reported it.
    pub(in crate::proxy) usage: Option<Usage>,
}

impl AttemptResponse {
    pub(super) fn new(observer: &ResponseObserver) -> AttemptResponse {
        AttemptResponse {
            model: observer.model.clone(),
            finish_reasons: observer.finish_reasons.clone(),
            usage: observer.usage.filter(|usage| !usage.is_blank()),
        }
    }
}

impl RequestSpans {
    pub(in crate::proxy) const fn new(context: TraceContext, is_asked: bool) -> RequestSpans {
        RequestSpans {
            context,
            is_asked,
            attempts: Vec::new(),
            content: None,
        }
    }

    /// Notes that the client has a right key, and may have its trace sampled.
    pub(in crate::proxy) const fn trust_client(&mut self) {
        self.context.is_sampled = self.is_asked;
    }

    pub(super) fn start_attempt(&mut self, attempt: Option<&Attempt>) {
        if let Some(content) = &mut self.content {
            content.received.clear();
        }
        if let Some(attempt) = attempt.filter(|_| self.context.is_sampled) {
            self.attempts.push(AttemptSpan {
                id: new_span_id(),
                attempt: attempt.clone(),
                started: Instant::now(),
                ended: None,
                error: None,
                first_chunk: None,
                response: AttemptResponse::default(),
            });
        }
    }

    /// The attempt under way, of a request that is sampled.
    pub(super) fn current(&mut self) -> Option<&mut AttemptSpan> {
        self.attempts.last_mut().filter(|last| last.ended.is_none())
    }

    /// Takes the attempt under way back, which was not made at all.
    pub(super) fn withdraw_attempt(&mut self) {
        if self.current().is_some() {
            self.attempts.pop();
        }
    }

    /// Tells the upstream of the attempt under way which span its own belong to. Headers of the config win.
    pub(in crate::proxy) fn add_headers(
        &self,
        headers: &mut HeaderMap,
        is_configured: impl Fn(&HeaderName) -> bool,
    ) {
        if is_configured(&TRACEPARENT) {
            return;
        }
        let last = self.attempts.last();
        let parent = last.map_or(self.context.span_id, |attempt| attempt.id);
        headers.insert(TRACEPARENT, self.context.traceparent(parent));
        let state = self.context.state.clone();
        if let Some(state) = state.filter(|_| !is_configured(&TRACESTATE)) {
            headers.insert(TRACESTATE, state);
        }
    }
}

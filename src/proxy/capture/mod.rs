//! Captures an inspected request: the hooks hand over what passes them. All else pays one look at a flag of its key.

mod message;
mod redaction;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::Session;

use self::message::{RawMessage, since};
use self::redaction::{encode_head, encode_target, encode_upstream_head, redact_text};
use super::context::{RequestContext, RequestCost};
use super::large_body;
use super::loss_paths::loss_paths;
use super::upstream::redact::CaptureSecrets;
use super::upstream::session::UpstreamRequest;
use super::upstream_response::is_answer;
use crate::access;
use crate::model::{Action, ApiErrorKind, Losses};
use crate::runtime::{
    Attempt, Capture, CaptureOutcome, CapturedAttempt, EventKind, EventSide, TimelineEvent,
};

/// What is captured of the request under way.
pub(super) struct CaptureRecorder {
    capture: Arc<Capture>,
    started: Instant,
    /// What the client has shown for its key.
    secrets: Vec<Vec<u8>>,
    client_request: Option<RawMessage>,
    attempt: Option<RawAttempt>,
    client_response: Option<RawMessage>,
    response_losses: Losses,
}

/// The attempt under way.
struct RawAttempt {
    attempt: Attempt,
    request: Option<RawMessage>,
    response: Option<RawMessage>,
    /// The upstream has answered with an error.
    is_error: bool,
}

/// Begins the capture of a request whose key is known, if the key is inspected.
pub(super) fn begin(session: &Session, ctx: &mut RequestContext) {
    let Some(key) = ctx.client.key() else {
        return;
    };
    let Some(capture) = key.inspection.begin(ctx.client.request_id()) else {
        return;
    };
    let (header, started) = (session.req_header(), ctx.client.started());
    let secrets = access::presented_secrets(&header.headers, header.uri.query());
    let first_line = first_line(header);
    let head = encode_head(&first_line, &header.headers);
    let message = RawMessage::new(head, capture.share());
    let format = ctx.client.label();
    capture.update(|request| {
        request.format = format;
        request.add_event(TimelineEvent {
            microseconds: 0,
            side: EventSide::Client,
            kind: EventKind::Arrived,
            detail: redact_text(&CaptureSecrets::new(None, &secrets), first_line),
            bytes: 0,
        });
    });
    ctx.capture = Some(Box::new(CaptureRecorder {
        capture,
        started,
        secrets,
        client_request: Some(message),
        attempt: None,
        client_response: None,
        response_losses: Losses::default(),
    }));
}

fn first_line(header: &RequestHeader) -> String {
    format!(
        "{} {} {:?}",
        header.method,
        encode_target(&header.uri),
        header.version
    )
}

impl CaptureRecorder {
    fn add_event(&self, side: EventSide, kind: EventKind, detail: String, bytes: u64) {
        let event = TimelineEvent {
            microseconds: since(self.started),
            side,
            kind,
            detail,
            bytes,
        };
        self.capture.update(|request| request.add_event(event));
    }

    /// The body of the client's request is here, as it was sent.
    pub(super) fn note_client_body(&mut self, body: &[u8]) {
        let at = since(self.started);
        if let Some(message) = &mut self.client_request {
            message.push(body, at);
        }
        let bytes = body.len() as u64;
        self.add_event(EventSide::Client, EventKind::BodyRead, String::new(), bytes);
    }

    pub(super) fn start_attempt(&mut self, attempt: &Attempt) {
        let name = attempt.upstream.name.to_string();
        self.add_event(EventSide::Upstream, EventKind::AttemptStarted, name, 0);
        self.attempt = Some(RawAttempt {
            attempt: attempt.clone(),
            request: None,
            response: None,
            is_error: false,
        });
    }

    /// The request goes out to the upstream as it is here.
    pub(super) fn note_upstream_request(&mut self, request: &UpstreamRequest) {
        let (at, share) = (since(self.started), self.capture.share());
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let head = encode_head(&first_line(&request.header), &request.header.headers);
        let mut message = RawMessage::new(head, share);
        let (first, mut rest) = request.body.clone();
        let chunks = std::iter::once(first).chain(std::iter::from_fn(|| rest.next_chunk()));
        for chunk in chunks {
            message.push(&chunk, at);
        }
        let size = message.size();
        attempt.request = Some(message);
        self.add_event(EventSide::Upstream, EventKind::Sent, String::new(), size);
    }

    /// The header of the upstream's response is here.
    pub(super) fn note_upstream_header(&mut self, header: &ResponseHeader) {
        let status = header.status;
        let share = self.capture.share();
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let head = encode_upstream_head(&format!("{:?} {status}", header.version), &header.headers);
        attempt.response = Some(RawMessage::new(head, share));
        attempt.is_error = !is_answer(status);
        let detail = status.as_u16().to_string();
        self.add_event(EventSide::Upstream, EventKind::HeaderReceived, detail, 0);
    }

    /// A chunk of the upstream's response is here, decompressed.
    pub(super) fn note_upstream_chunk(&mut self, chunk: &[u8]) {
        let at = since(self.started);
        let attempt = self.attempt.as_mut();
        if let Some(message) = attempt.and_then(|attempt| attempt.response.as_mut()) {
            message.push(chunk, at);
        }
    }

    /// The attempt under way is over.
    pub(super) fn end_attempt(&mut self, error: Option<ApiErrorKind>) {
        if let Some(error) = error {
            let word = error.name().to_owned();
            self.add_event(EventSide::Upstream, EventKind::AttemptFailed, word, 0);
        }
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        let upstream = attempt.attempt.upstream.clone();
        let secrets = CaptureSecrets::new(Some(&*upstream), &self.secrets);
        let (request, response) = (attempt.request, attempt.response);
        let size = [&request, &response].into_iter().flatten();
        let size: u64 = size.map(RawMessage::size).sum();
        let codec = upstream.format.codec();
        let redact = || {
            let events = response
                .as_ref()
                .map(|message| message.events(EventSide::Upstream, codec, &secrets));
            let request = request.map(|message| message.finish(&secrets, false));
            let response = response.map(|message| message.finish(&secrets, attempt.is_error));
            (events.unwrap_or_default(), request, response)
        };
        let (events, request, response) = large_body::process(size as usize, redact);
        self.capture.update(|captured| {
            captured.add_stream(events);
            captured.add_attempt(CapturedAttempt {
                upstream: upstream.name.clone(),
                format: upstream.format.name(),
                request,
                response,
            });
        });
    }

    /// The header of the response goes out to the client.
    pub(super) fn note_client_header(&mut self, header: &ResponseHeader) {
        let status = header.status;
        let head = encode_head(&format!("{:?} {status}", header.version), &header.headers);
        self.client_response = Some(RawMessage::new(head, self.capture.share()));
        let detail = status.as_u16().to_string();
        self.add_event(EventSide::Client, EventKind::HeaderSent, detail, 0);
    }

    /// A chunk of the response goes out to the client.
    pub(super) fn note_client_chunk(&mut self, chunk: &Bytes) {
        let at = since(self.started);
        if let Some(message) = &mut self.client_response {
            message.push(chunk, at);
        }
    }

    pub(super) fn note_response_losses(&mut self, losses: &Losses) {
        self.response_losses.0.extend(losses.0.iter().cloned());
    }
}

/// The request has ended: what is left of it is redacted and shown.
pub(super) fn finish(ctx: &mut RequestContext, cost: Option<RequestCost>) {
    let Some(mut recorder) = ctx.capture.take() else {
        return;
    };
    recorder.end_attempt(None);
    let upstream = ctx.route.current().map(|attempt| attempt.upstream.clone());
    let secrets = CaptureSecrets::new(upstream.as_deref(), &recorder.secrets).of_client();
    let (request, response) = (
        recorder.client_request.take(),
        recorder.client_response.take(),
    );
    let size = [&request, &response].into_iter().flatten();
    let size: u64 = size.map(RawMessage::size).sum();
    let codec = ctx.client.codec();
    let redact = || {
        let events = response
            .as_ref()
            .map(|message| message.events(EventSide::Client, codec, &secrets));
        let request = request.map(|message| message.finish(&secrets, false));
        let response = response.map(|message| message.finish(&secrets, false));
        (events.unwrap_or_default(), request, response)
    };
    let (events, request, response) = large_body::process(size as usize, redact);
    let outcome = outcome(ctx, cost, &recorder);
    let (has_left, ended) = (ctx.client.has_left(), outcome.microseconds);
    let (model, is_stream) = (ctx.route.model_name(), ctx.route.is_stream());
    let event = |kind, microseconds| TimelineEvent {
        microseconds,
        side: EventSide::Client,
        kind,
        detail: String::new(),
        bytes: 0,
    };
    recorder.capture.update(|captured| {
        captured.model = model.unwrap_or_default().to_owned();
        captured.is_stream = is_stream;
        captured.client_request = request;
        captured.client_response = response;
        captured.add_stream(events);
        if has_left {
            captured.add_event(event(EventKind::ClientLeft, ended));
        }
        captured.add_event(event(EventKind::Ended, ended));
        captured.outcome = Some(outcome);
    });
}

fn outcome(
    ctx: &RequestContext,
    cost: Option<RequestCost>,
    recorder: &CaptureRecorder,
) -> CaptureOutcome {
    let (of_request, of_response) = (&ctx.attempt.losses, &recorder.response_losses);
    let is_dropped = |action| action == Action::Dropped;
    let is_adjusted = |action| action != Action::Dropped;
    CaptureOutcome {
        status: ctx.response.status(),
        error: ctx.response.error_kind().map(ApiErrorKind::name),
        usage: cost.map(|cost| cost.metered.usage),
        is_estimated: cost.is_some_and(|cost| cost.metered.estimated),
        cost: cost.and_then(|cost| cost.cost),
        dropped: loss_paths(ctx, of_request, is_dropped),
        adjusted: loss_paths(ctx, of_request, is_adjusted),
        response_dropped: loss_paths(ctx, of_response, is_dropped),
        response_adjusted: loss_paths(ctx, of_response, is_adjusted),
        microseconds: since(recorder.started),
    }
}

/// A request that breaks off without its last hook is over all the same.
impl Drop for CaptureRecorder {
    fn drop(&mut self) {
        let microseconds = since(self.started);
        self.capture.update(|captured| {
            captured.outcome.get_or_insert_with(|| CaptureOutcome {
                status: 499,
                microseconds,
                ..CaptureOutcome::default()
            });
        });
    }
}

//! Captures an inspected request: the hooks hand over what passes them.

mod message;
mod redaction;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use pingora_http::{RequestHeader, ResponseHeader};

use super::large_body;
use super::upstream::redact::CaptureSecrets;
use super::upstream::session::UpstreamRequest;
use crate::access;
use crate::formats::Codec;
use crate::model::{ApiErrorKind, Losses};
use crate::runtime::{
    Attempt, Capture, CaptureOutcome, CapturedAttempt, EventKind, EventSide, TimelineEvent,
    Upstream,
};
use message::{MessageDraft, since};
use redaction::{
    encode_head, encode_target, encode_upstream_head, encode_upstream_request_head, redact_text,
};

/// What is captured of the request under way.
pub(super) struct CaptureRecorder {
    capture: Arc<Capture>,
    started: Instant,
    /// What the client has shown for its key, if it has.
    secrets: Vec<Vec<u8>>,
    client_request: Option<MessageDraft>,
    attempt: Option<RawAttempt>,
    client_response: Option<MessageDraft>,
    response_losses: Losses,
}

/// The attempt under way.
struct RawAttempt {
    attempt: Attempt,
    request: Option<MessageDraft>,
    response: Option<MessageDraft>,
    /// The upstream has answered with an error.
    is_error: bool,
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
    /// Begins the capture of a request with its header, which has come at `started`.
    pub(super) fn new(
        capture: Arc<Capture>,
        started: Instant,
        header: &RequestHeader,
        format: &'static str,
    ) -> CaptureRecorder {
        let secret = access::presented_secret(&header.headers, header.uri.query());
        let secrets: Vec<Vec<u8>> = secret.into_iter().collect();
        let first_line = first_line(header);
        let head = encode_head(&first_line, &header.headers);
        let message = MessageDraft::new(head, capture.share());
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
        CaptureRecorder {
            capture,
            started,
            secrets,
            client_request: Some(message),
            attempt: None,
            client_response: None,
            response_losses: Losses::default(),
        }
    }

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
        let line = first_line(&request.header);
        let prefix = &attempt.attempt.upstream.base.prefix;
        // A longer one may name the account of the operator.
        let line = match prefix.matches('/').count() {
            0 | 1 => line,
            _ => line.replacen(prefix.as_str(), "/***", 1),
        };
        let head = encode_upstream_request_head(&line, &request.header.headers);
        let mut message = MessageDraft::new(head, share);
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
        attempt.response = Some(MessageDraft::new(head, share));
        attempt.is_error = !status.is_success();
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
        let size: u64 = size.map(MessageDraft::size).sum();
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
        self.client_response = Some(MessageDraft::new(head, self.capture.share()));
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

    /// What the client's format could not express of the response.
    pub(super) const fn response_losses(&self) -> &Losses {
        &self.response_losses
    }

    /// Microseconds since the request has arrived.
    pub(super) fn elapsed(&self) -> u64 {
        since(self.started)
    }

    /// The request has ended: what is left of it is redacted and shown.
    pub(super) fn finish(&mut self, ended: FinishedRequest<'_>) {
        self.end_attempt(None);
        let secrets = CaptureSecrets::new(ended.upstream, &self.secrets).of_client();
        let (request, response) = (self.client_request.take(), self.client_response.take());
        let size = [&request, &response].into_iter().flatten();
        let size: u64 = size.map(MessageDraft::size).sum();
        let redact = || {
            let events = response
                .as_ref()
                .map(|message| message.events(EventSide::Client, ended.codec, &secrets));
            let request = request.map(|message| message.finish(&secrets, false));
            let response = response.map(|message| message.finish(&secrets, false));
            (events.unwrap_or_default(), request, response)
        };
        let (events, request, response) = large_body::process(size as usize, redact);
        let event = |kind| TimelineEvent {
            microseconds: ended.outcome.microseconds,
            side: EventSide::Client,
            kind,
            detail: String::new(),
            bytes: 0,
        };
        self.capture.update(|captured| {
            ended.model.clone_into(&mut captured.model);
            captured.is_stream = ended.is_stream;
            captured.client_request = request;
            captured.client_response = response;
            captured.add_stream(events);
            if ended.has_left {
                captured.add_event(event(EventKind::ClientLeft));
            }
            captured.add_event(event(EventKind::Ended));
            captured.outcome = Some(ended.outcome.clone());
        });
    }
}

/// What is known of a request that has ended.
pub(super) struct FinishedRequest<'a> {
    /// The upstream that was asked last.
    pub(super) upstream: Option<&'a Upstream>,
    /// The client's format.
    pub(super) codec: &'a dyn Codec,
    pub(super) model: &'a str,
    pub(super) is_stream: bool,
    pub(super) has_left: bool,
    pub(super) outcome: CaptureOutcome,
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

//! Inspections and what they captured.

use serde::Serialize;

use super::{Decimal, Moment};
use crate::runtime::{
    Capture, CapturedMessage, CapturedRequest, EventKind, EventSide, Inspection, TimelineEvent,
};

/// An inspection of a key.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct InspectionView {
    pub id: String,
    pub key_id: String,
    /// The name of the key.
    pub key: String,
    /// Empty: it is a key of the config.
    pub account: String,
    /// Who has started it.
    pub by: String,
    /// The process whose requests it shows: others capture nothing.
    pub gateway: String,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub started: Moment,
    /// No request is captured after this.
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub until: Moment,
    /// What was captured can be seen until then.
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub kept_until: Moment,
    pub running: bool,
    /// How many more requests are captured.
    pub left: u32,
    /// In the order in which they came.
    pub requests: Vec<CaptureLineView>,
}

impl InspectionView {
    pub fn new(inspection: &Inspection, gateway: &str) -> InspectionView {
        let captures = inspection.captures();
        InspectionView {
            id: inspection.id.clone(),
            key_id: inspection.key.id.clone(),
            key: inspection.key.name.clone(),
            account: inspection.key.account.clone(),
            by: inspection.key.by.clone(),
            gateway: gateway.to_owned(),
            started: Moment(inspection.started.as_millisecond()),
            until: Moment(inspection.until().as_millisecond()),
            kept_until: Moment(inspection.kept_until().as_millisecond()),
            running: inspection.is_running(),
            left: inspection.left(),
            requests: captures
                .iter()
                .map(|capture| CaptureLineView::new(capture, &capture.request()))
                .collect(),
        }
    }

    /// Nothing of it changes any more.
    pub fn is_final(&self) -> bool {
        !self.running && self.requests.iter().all(|request| request.status.is_some())
    }
}

/// An inspected request in one line.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct CaptureLineView {
    /// The first one of an inspection is 1.
    pub number: u32,
    pub request_id: String,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub time: Moment,
    /// Empty until the request has ended.
    pub model: String,
    /// The format of the client.
    pub format: &'static str,
    pub stream: bool,
    /// The upstream that was asked last; empty: none was.
    pub upstream: String,
    /// Null: it is under way.
    pub status: Option<u16>,
    /// The kind of error that the client was told.
    pub error: Option<&'static str>,
    /// Tokens.
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub estimated: bool,
    /// Null: it is not known yet, or there is no price.
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub cost: Option<Decimal>,
    pub took_ms: Option<f64>,
}

impl CaptureLineView {
    fn new(capture: &Capture, request: &CapturedRequest) -> CaptureLineView {
        let outcome = request.outcome.as_ref();
        let upstream = request.attempts.last();
        let usage = outcome.and_then(|outcome| outcome.usage);
        CaptureLineView {
            number: capture.number,
            request_id: capture.request_id.clone(),
            time: Moment(capture.started.as_millisecond()),
            model: request.model.clone(),
            format: request.format,
            stream: request.is_stream,
            upstream: upstream.map_or_else(String::new, |it| it.upstream.to_string()),
            status: outcome.map(|outcome| outcome.status),
            error: outcome.and_then(|outcome| outcome.error),
            input: usage.map(|usage| usage.input),
            output: usage.map(|usage| usage.output),
            estimated: outcome.is_some_and(|outcome| outcome.is_estimated),
            cost: outcome.and_then(|outcome| outcome.cost).map(Decimal),
            took_ms: outcome.map(|outcome| milliseconds(outcome.microseconds)),
        }
    }
}

/// An inspected request with all that was captured of it. Credentials are redacted.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct CaptureView {
    #[serde(flatten)]
    pub line: CaptureLineView,
    /// What the client sent; null: the request is under way.
    pub client_request: Option<MessageView>,
    /// What upstreams were sent and answered, the last four attempts in their order.
    pub attempts: Vec<CapturedAttemptView>,
    /// What the client got; null: nothing, or the request is under way.
    pub client_response: Option<MessageView>,
    pub timeline: Vec<TimelineEventView>,
    /// How many more events there were.
    pub omitted_events: usize,
    /// The client's paths of what the upstream's format could not express.
    pub dropped: Vec<String>,
    /// The same of what was adjusted or added.
    pub adjusted: Vec<String>,
    /// Of the response: what the client's format could not express.
    pub response_dropped: Vec<String>,
    pub response_adjusted: Vec<String>,
}

impl CaptureView {
    pub fn new(capture: &Capture) -> CaptureView {
        let request = capture.request();
        let outcome = request.outcome.clone().unwrap_or_default();
        let message = |message: &Option<_>| message.as_deref().map(MessageView::from);
        let attempts = request.attempts.iter().map(|attempt| CapturedAttemptView {
            upstream: attempt.upstream.to_string(),
            format: attempt.format,
            request: message(&attempt.request),
            response: message(&attempt.response),
        });
        CaptureView {
            line: CaptureLineView::new(capture, &request),
            client_request: message(&request.client_request),
            attempts: attempts.collect(),
            client_response: message(&request.client_response),
            timeline: request
                .timeline
                .iter()
                .map(TimelineEventView::from)
                .collect(),
            omitted_events: request.omitted_events,
            dropped: paths(&outcome.dropped),
            adjusted: paths(&outcome.adjusted),
            response_dropped: paths(&outcome.response_dropped),
            response_adjusted: paths(&outcome.response_adjusted),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct CapturedAttemptView {
    pub upstream: String,
    /// The format of the upstream.
    pub format: &'static str,
    /// Null: nothing was sent.
    pub request: Option<MessageView>,
    /// Null: nothing came back.
    pub response: Option<MessageView>,
}

/// A header and a body, as text.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct MessageView {
    /// The first line and the fields.
    pub head: String,
    /// At most 256 KiB, decompressed.
    pub body: String,
    /// How many bytes the body had.
    pub size: u64,
    /// Not all of it is here.
    pub cut: bool,
}

impl From<&CapturedMessage> for MessageView {
    fn from(message: &CapturedMessage) -> MessageView {
        MessageView {
            head: message.head.clone(),
            body: message.body.clone(),
            size: message.size,
            cut: message.is_cut,
        }
    }
}

/// One event of a request.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TimelineEventView {
    /// Since the request has arrived.
    pub ms: f64,
    /// `client` or `upstream`.
    pub side: &'static str,
    /// `arrived`, `body_read`, `attempt_started`, `sent`, `header_received`, `attempt_failed`, `header_sent`,
    /// `stream_event`, `chunk`, `client_left` or `ended`.
    pub kind: &'static str,
    /// Such as the upstream, the status, or the name of the event.
    pub detail: String,
    pub bytes: u64,
}

impl From<&TimelineEvent> for TimelineEventView {
    fn from(event: &TimelineEvent) -> TimelineEventView {
        TimelineEventView {
            ms: milliseconds(event.microseconds),
            side: match event.side {
                EventSide::Client => "client",
                EventSide::Upstream => "upstream",
            },
            kind: match event.kind {
                EventKind::Arrived => "arrived",
                EventKind::BodyRead => "body_read",
                EventKind::AttemptStarted => "attempt_started",
                EventKind::Sent => "sent",
                EventKind::HeaderReceived => "header_received",
                EventKind::AttemptFailed => "attempt_failed",
                EventKind::HeaderSent => "header_sent",
                EventKind::StreamEvent => "stream_event",
                EventKind::Chunk => "chunk",
                EventKind::ClientLeft => "client_left",
                EventKind::Ended => "ended",
            },
            detail: event.detail.clone(),
            bytes: event.bytes,
        }
    }
}

fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

fn paths(list: &str) -> Vec<String> {
    let paths = list.split(", ").filter(|path| !path.is_empty());
    paths.map(str::to_owned).collect()
}

//! Sends batches of spans to the receiver, and tries again where that may help.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use prost::Message as _;
use tokio::time::{sleep, timeout};

use super::attributes::Attributes;
use super::otlp::{
    ExportRequest, ExportResponse, InstrumentationScope, ResourceSpans, ScopeSpans, Span,
    TracedResource,
};
use super::span_queue::QueuedSpans;
use crate::config::TelemetryConfig;
use crate::metrics::{Metrics, SpanOutcome};

/// How often a batch is sent at most.
const ATTEMPTS: u32 = 4;
/// The pause before the second time; doubled every time.
const BACKOFF: Duration = Duration::from_millis(500);
/// A receiver that asks for a longer pause gets this one.
const MAX_BACKOFF: Duration = Duration::from_secs(10);

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// Sends a request to an absolute URI. An error says what went wrong.
pub trait ExportClient: Send + Sync + 'static {
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Bytes>, String>> + Send;
}

/// Sends the spans of a queue.
pub struct SpanExporter<C> {
    client: C,
    queued: QueuedSpans,
    metrics: Arc<Metrics>,
    uri: String,
    headers: HeaderMap,
    timeout: Duration,
    resource: TracedResource,
    /// The last batch could not be sent, which is logged once.
    is_failing: bool,
}

/// Why a batch was not taken.
struct ExportFailure {
    reason: String,
    /// The pause that the receiver asks for, where another attempt may help.
    retry: Option<Option<Duration>>,
}

impl<C: ExportClient> SpanExporter<C> {
    pub(super) fn new(
        settings: &TelemetryConfig,
        client: C,
        queued: QueuedSpans,
        metrics: Arc<Metrics>,
    ) -> SpanExporter<C> {
        let endpoint = &settings.endpoint;
        let scheme = if endpoint.tls { "https" } else { "http" };
        let (authority, prefix) = (&endpoint.authority, &endpoint.prefix);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, PROTOBUF);
        let configured = settings.headers.iter().filter_map(|(name, value)| {
            let name: HeaderName = name.parse().ok()?;
            let mut value = HeaderValue::from_str(value.expose()).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        headers.extend(configured);
        SpanExporter {
            client,
            queued,
            metrics,
            uri: format!("{scheme}://{authority}{prefix}/v1/traces"),
            headers,
            timeout: settings.timeout,
            resource: resource(settings),
            is_failing: false,
        }
    }

    /// Sends batches for as long as spans come.
    pub async fn run(mut self) {
        while let Some(mut batch) = self.queued.next_batch().await {
            let spans = std::mem::take(&mut batch.spans);
            if !spans.is_empty() {
                self.export(spans).await;
            }
            batch.acknowledge();
        }
    }

    async fn export(&mut self, spans: Vec<Span>) {
        let count = spans.len();
        let body = Bytes::from(self.encode(spans));
        let mut backoff = BACKOFF;
        for attempt in 1..=ATTEMPTS {
            match self.send(body.clone()).await {
                Ok(rejected) => return self.note_success(count, rejected),
                Err(ExportFailure {
                    retry: Some(pause), ..
                }) if attempt < ATTEMPTS => {
                    sleep(pause.unwrap_or(backoff).min(MAX_BACKOFF)).await;
                    backoff *= 2;
                }
                Err(failure) => return self.note_failure(count, &failure.reason),
            }
        }
    }

    fn encode(&self, spans: Vec<Span>) -> Vec<u8> {
        let scope = InstrumentationScope {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let request = ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope),
                    spans,
                    schema_url: String::new(),
                }],
            }],
        };
        request.encode_to_vec()
    }

    /// Sends a batch once; returns how many of its spans the receiver has rejected.
    async fn send(&self, body: Bytes) -> Result<usize, ExportFailure> {
        let failed = |reason: String, retry| ExportFailure { reason, retry };
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.headers_mut() = self.headers.clone();
        match self.uri.parse() {
            Ok(uri) => *request.uri_mut() = uri,
            Err(error) => return Err(failed(error.to_string(), None)),
        }
        let sent = timeout(self.timeout, self.client.send(request)).await;
        let sent =
            sent.unwrap_or_else(|_| Err("no response in time (telemetry.timeout)".to_owned()));
        let response = sent.map_err(|reason| failed(reason, Some(None)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(rejected_spans(response.body()));
        }
        let may_help = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        let pause = response.headers().get(RETRY_AFTER);
        let pause = pause.and_then(|value| value.to_str().ok()?.parse().ok());
        let reason = format!("the receiver answered with status {status}");
        Err(failed(
            reason,
            may_help.then(|| pause.map(Duration::from_secs)),
        ))
    }

    fn note_success(&mut self, count: usize, rejected: usize) {
        if std::mem::take(&mut self.is_failing) {
            log::info!("telemetry: spans are sent again");
        }
        let rejected = rejected.min(count);
        if rejected > 0 {
            log::warn!("telemetry: the receiver has rejected {rejected} of {count} spans");
            self.metrics.count_spans(SpanOutcome::Failed, rejected);
        }
        self.metrics
            .count_spans(SpanOutcome::Exported, count - rejected);
    }

    fn note_failure(&mut self, count: usize, reason: &str) {
        self.metrics.count_spans(SpanOutcome::Failed, count);
        if !std::mem::replace(&mut self.is_failing, true) {
            log::warn!("telemetry: {count} spans could not be sent and are lost: {reason}");
        }
    }
}

fn rejected_spans(body: &Bytes) -> usize {
    let response = ExportResponse::decode(body.clone()).ok();
    let partial = response.and_then(|response| response.partial_success);
    let rejected = partial.map_or(0, |partial| partial.rejected_spans);
    usize::try_from(rejected).unwrap_or(0)
}

fn resource(settings: &TelemetryConfig) -> TracedResource {
    let mut attributes = Attributes::default();
    attributes.text("service.name", &settings.service_name);
    attributes.text("service.version", env!("CARGO_PKG_VERSION"));
    for (name, value) in &settings.resource {
        attributes.text(name, value);
    }
    TracedResource {
        attributes: attributes.into_list(),
    }
}

//! Traces of requests: which are sampled, what a span holds, and the export over OTLP/HTTP.

mod attributes;
pub mod content;
mod exporter;
pub mod gen_ai;
mod otlp;
mod sampler;
mod span_queue;
mod trace_context;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;

pub use attributes::Attributes;
pub use exporter::{ExportClient, SpanExporter};
pub use otlp::{Span, SpanKind, SpanStatus, SpanStatusCode};
pub use trace_context::{SpanId, TRACEPARENT, TRACESTATE, TraceContext, TraceId, new_span_id};

use sampler::Sampler;
use span_queue::SpanQueue;

use crate::config::TelemetryConfig;
use crate::metrics::{Metrics, SpanOutcome};
use crate::runtime::OwnerShare;

/// Decides which requests are traced, and takes their spans. Its clones share one queue.
#[derive(Clone)]
pub struct Telemetry {
    sampler: Sampler,
    queue: SpanQueue,
    keeps_content: bool,
}

impl Telemetry {
    /// Makes the part that requests use, and the part that sends what they have left.
    pub fn new<C: ExportClient>(
        settings: &TelemetryConfig,
        client: C,
        metrics: &Arc<Metrics>,
    ) -> (Telemetry, SpanExporter<C>) {
        for outcome in SpanOutcome::ALL {
            metrics.count_spans(outcome, 0);
        }
        let (queue, queued) = SpanQueue::new(metrics.clone());
        let telemetry = Telemetry {
            sampler: Sampler::new(settings.sample),
            queue,
            keeps_content: settings.content,
        };
        let exporter = SpanExporter::new(settings, client, queued, metrics.clone());
        (telemetry, exporter)
    }

    /// Continues the trace of a client, or begins one. A client with a right key decides whether its own trace is sampled.
    pub fn start(&self, headers: &HeaderMap) -> TraceContext {
        let of_client = headers.contains_key(TRACEPARENT);
        let of_client = of_client.then(|| TraceContext::of_client(headers));
        of_client.flatten().unwrap_or_else(|| {
            let mut context = TraceContext::new();
            context.is_sampled = self.sampler.samples(&context.trace_id);
            context
        })
    }

    /// Tells whether one of the requests of nobody that ask for it is sampled: a client chooses the id of its trace.
    pub fn samples_request(&self, context: &TraceContext) -> bool {
        let mut id = TraceId::default();
        id[8..].copy_from_slice(&context.span_id);
        context.is_sampled && self.sampler.samples(&id)
    }

    /// Whether spans hold what is asked and answered.
    pub const fn keeps_content(&self) -> bool {
        self.keeps_content
    }

    /// Takes the spans of a request that has ended. Where too many wait they are lost, and counted.
    pub fn record(&self, owner: Option<&Arc<OwnerShare>>, spans: Vec<Span>) {
        self.queue.push(owner, spans);
    }

    /// Returns when all spans so far are sent or given up, or when the time is over.
    pub async fn flush(&self, limit: Duration) {
        self.queue.flush(limit).await;
    }
}

//! All metrics of the gateway, with typed labels, and their text for a Prometheus scrape.

mod cap_gauges;
mod cost;
mod journal_collector;
mod label_map;
mod labels;
mod served_request;
mod span_outcome;
mod upstream_gauges;

use std::sync::OnceLock;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::runtime::Handle;

pub use cap_gauges::CapStatus;
pub use journal_collector::JournalMetrics;
pub use served_request::ServedRequest;
pub use span_outcome::SpanOutcome;
pub use upstream_gauges::UpstreamStatus;

use cap_gauges::CapGauges;
use cost::CostCounter;
use journal_collector::JournalCollector;
use label_map::{LabelMap, ModelMetrics};
use labels::{
    AlertLabels, CostLabels, FailureLabels, FormatLabel, ModelLabels, NoLabels, OutcomeLabel,
    RequestLabels, TokenLabels,
};
use upstream_gauges::UpstreamGauges;

use crate::formats::Operation;
use crate::model::Format;

/// Histogram buckets: from a response out of memory to the longest reasoning that a client waits for.
const SECONDS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];

/// Buckets of what the gateway itself takes: from a small request to a queue.
const ADDED_SECONDS: [f64; 12] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5,
];

/// The formats, the operations that are counted apart, and one more for requests without a format.
const FORMATS: usize = Format::EVERY.len() + Operation::LABELS.len() + 1;

pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    first_byte: Family<ModelLabels, Histogram>,
    added: Family<ModelLabels, Histogram>,
    whole: Family<ModelLabels, Histogram>,
    received: Family<FormatLabel, Counter>,
    sent: Family<FormatLabel, Counter>,
    in_flight: Gauge,
    tasks: Gauge,
    /// The runtime whose tasks are counted; pingora creates it when the service starts.
    service: OnceLock<Handle>,
    upstream_failures: Family<FailureLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    estimated_tokens: Family<TokenLabels, Counter>,
    cost: Family<CostLabels, CostCounter>,
    reloads: Family<OutcomeLabel, Counter>,
    key_lookups: Family<OutcomeLabel, Counter>,
    /// Absent without a store.
    store_up: Family<NoLabels, Gauge>,
    /// Absent without a store in a file.
    disk_low: Family<NoLabels, Gauge>,
    /// Absent without `limits_store`.
    limits_store_up: Family<NoLabels, Gauge>,
    limited_alone: Family<NoLabels, Counter>,
    /// Absent without `telemetry`.
    spans: Family<OutcomeLabel, Counter>,
    /// Absent without the console.
    alerts: Family<AlertLabels, Counter>,
    upstream_gauges: UpstreamGauges,
    cap_gauges: CapGauges,
    journal: JournalCollector,
    /// The metrics of each model and upstream: a lookup in a family needs owned labels, here counting a
    /// request allocates nothing and searches once.
    by_format: [LabelMap<ModelMetrics>; FORMATS],
    /// By key and model.
    costs: LabelMap<CostCounter>,
}

/// Why an attempt at an upstream failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    Connect,
    /// The gateway could not fetch its credential.
    Credentials,
    Tls,
    Timeout,
    Reset,
    Status,
    Malformed,
    Cut,
    /// `max_in_flight` is reached and the queue is full or timed out.
    Full,
}

impl FailureCause {
    /// The value of the `cause` label.
    pub const fn name(self) -> &'static str {
        match self {
            FailureCause::Connect => "connect",
            FailureCause::Credentials => "credentials",
            FailureCause::Tls => "tls",
            FailureCause::Timeout => "timeout",
            FailureCause::Reset => "reset",
            FailureCause::Status => "status",
            FailureCause::Malformed => "unreadable",
            FailureCause::Cut => "cut",
            FailureCause::Full => "full",
        }
    }
}

/// Held while a request is being served.
#[derive(Debug)]
#[must_use = "the request counts as ended when this is dropped"]
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    pub fn new() -> Metrics {
        let seconds = || Histogram::new(SECONDS);
        let metrics = Metrics {
            registry: Registry::with_prefix("omniglot"),
            requests: Family::default(),
            first_byte: Family::new_with_constructor(seconds),
            added: Family::new_with_constructor(|| Histogram::new(ADDED_SECONDS)),
            whole: Family::new_with_constructor(seconds),
            received: Family::default(),
            sent: Family::default(),
            in_flight: Gauge::default(),
            tasks: Gauge::default(),
            service: OnceLock::new(),
            upstream_failures: Family::default(),
            tokens: Family::default(),
            estimated_tokens: Family::default(),
            cost: Family::default(),
            reloads: Family::default(),
            key_lookups: Family::default(),
            store_up: Family::default(),
            disk_low: Family::default(),
            limits_store_up: Family::default(),
            limited_alone: Family::default(),
            spans: Family::default(),
            alerts: Family::default(),
            upstream_gauges: UpstreamGauges::default(),
            cap_gauges: CapGauges::default(),
            journal: JournalCollector::default(),
            by_format: Default::default(),
            costs: LabelMap::default(),
        };
        metrics.registered()
    }

    /// The registry adds the prefix, the unit and `_total` to the names, and a full stop to the help.
    fn registered(mut self) -> Metrics {
        self.register_requests();
        self.register_operation();
        let registry = &mut self.registry;
        self.upstream_gauges.register(registry);
        self.cap_gauges.register(registry);
        registry.register_collector(Box::new(self.journal.clone()));
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "The running version", Info::new(version));
        self
    }

    fn register_requests(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "requests",
            "Requests by the status that the client got",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "first_byte",
            "Time from the arrival of a request to the first byte of the response",
            Unit::Seconds,
            self.first_byte.clone(),
        );
        registry.register_with_unit(
            "added",
            "Time until the first byte that the gateway itself took, without what the client and upstreams took",
            Unit::Seconds,
            self.added.clone(),
        );
        registry.register_with_unit(
            "request",
            "Time from the arrival of a request to the last byte of the response",
            Unit::Seconds,
            self.whole.clone(),
        );
        registry.register_with_unit(
            "received",
            "Bytes of request bodies received from clients",
            Unit::Bytes,
            self.received.clone(),
        );
        registry.register_with_unit(
            "sent",
            "Bytes of response bodies sent to clients",
            Unit::Bytes,
            self.sent.clone(),
        );
        registry.register(
            "requests_in_flight",
            "Requests in flight",
            self.in_flight.clone(),
        );
        registry.register(
            "tasks",
            "Tokio tasks that serve clients and upstream connections",
            self.tasks.clone(),
        );
        registry.register(
            "upstream_failures",
            "Failed attempts at an upstream, also where a retry succeeded",
            self.upstream_failures.clone(),
        );
        registry.register(
            "tokens",
            "Tokens as counted by upstreams: input includes cached, output includes reasoning",
            self.tokens.clone(),
        );
        registry.register(
            "estimated_tokens",
            "Tokens estimated by the gateway where an upstream sent no complete usage, such as broken streams",
            self.estimated_tokens.clone(),
        );
        registry.register(
            "cost",
            "Cost of requests, in the currency of the model's prices",
            self.cost.clone(),
        );
    }

    /// Those of the config and of the databases.
    fn register_operation(&mut self) {
        // Alerts see the first reload only where there was a count before it.
        for outcome in ["taken", "refused"] {
            drop(self.reloads.get_or_create(&OutcomeLabel { outcome }));
        }
        let registry = &mut self.registry;
        registry.register(
            "config_reloads",
            "Config reloads by outcome, taken or refused",
            self.reloads.clone(),
        );
        registry.register(
            "key_lookups",
            "Lookups of API keys in the store by outcome",
            self.key_lookups.clone(),
        );
        registry.register(
            "store_up",
            "1 if the last query of the store succeeded",
            self.store_up.clone(),
        );
        registry.register(
            "store_disk_low",
            "1 if the disk of the store has less free than journal.min_free: only usage records are written",
            self.disk_low.clone(),
        );
        registry.register(
            "limits_store_up",
            "1 if the Redis of the shared limits answers",
            self.limits_store_up.clone(),
        );
        registry.register(
            "limited_alone",
            "Requests whose shared limits this process decided alone because Redis did not answer",
            self.limited_alone.clone(),
        );
        registry.register(
            "telemetry_spans",
            "Spans by outcome: exported, failed to be sent, or dropped because too many waited",
            self.spans.clone(),
        );
        registry.register(
            "alerts",
            "Messages of alerts by channel and outcome: sent, or failed after the last attempt",
            self.alerts.clone(),
        );
    }

    pub fn in_flight(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// The number of requests being served.
    pub fn requests_in_flight(&self) -> i64 {
        self.in_flight.get()
    }

    /// Sets the runtime whose tasks are counted; called on a task of the service that serves the clients.
    pub fn set_service_runtime(&self) {
        self.service.get_or_init(Handle::current);
    }

    pub fn upstream_failed(&self, upstream: &str, cause: FailureCause) {
        let labels = FailureLabels {
            upstream: upstream.into(),
            cause: cause.name(),
        };
        self.upstream_failures.get_or_create(&labels).inc();
    }

    /// Shows the state of the journal in every scrape from now on.
    pub fn collect_journal(&self, read: impl Fn() -> JournalMetrics + Send + Sync + 'static) {
        self.journal.set_source(read);
    }

    pub fn record_reload(&self, ok: bool) {
        let outcome = if ok { "taken" } else { "refused" };
        self.reloads.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub fn record_key_lookup(&self, outcome: &'static str) {
        let label = OutcomeLabel { outcome };
        self.key_lookups.get_or_create(&label).inc();
    }

    pub fn set_store_up(&self, answers: bool) {
        self.store_up.get_or_create(&[]).set(i64::from(answers));
    }

    pub fn set_disk_low(&self, is_low: bool) {
        self.disk_low.get_or_create(&[]).set(i64::from(is_low));
    }

    pub fn set_limits_store_up(&self, answers: bool) {
        let up = self.limits_store_up.get_or_create(&[]);
        up.set(i64::from(answers));
        // Shown from the start.
        self.limited_alone.get_or_create(&[]).inc_by(0);
    }

    pub fn record_local_decision(&self) {
        self.limited_alone.get_or_create(&[]).inc();
    }

    /// Shows the counts of alerts from the start.
    pub fn show_alerts(&self) {
        for channel in ["mail", "webhook"] {
            for outcome in ["sent", "failed"] {
                let labels = AlertLabels { channel, outcome };
                self.alerts.get_or_create(&labels).inc_by(0);
            }
        }
    }

    pub fn count_alert(&self, channel: &'static str, is_sent: bool) {
        let outcome = if is_sent { "sent" } else { "failed" };
        let labels = AlertLabels { channel, outcome };
        self.alerts.get_or_create(&labels).inc();
    }

    /// Counts spans; of none, so that they are shown from the start.
    pub fn count_spans(&self, outcome: SpanOutcome, count: usize) {
        let outcome = outcome.name();
        let counter = self.spans.get_or_create(&OutcomeLabel { outcome });
        counter.inc_by(count as u64);
    }

    /// Every metric in the OpenMetrics text format.
    pub fn render(&self, upstreams: Vec<UpstreamStatus>, caps: Vec<CapStatus>) -> String {
        self.upstream_gauges.set(upstreams, || {
            self.cap_gauges.set(caps);
            let tasks = self
                .service
                .get()
                .map_or(0, |service| service.metrics().num_alive_tasks());
            self.tasks.set(i64::try_from(tasks).unwrap_or(i64::MAX));
            let mut text = String::new();
            encode(&mut text, &self.registry).expect("a string takes all that is written to it");
            text
        })
    }
}

#[cfg(test)]
mod tests;

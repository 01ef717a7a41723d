//! Everything the gateway counts, under typed labels, and its text for a Prometheus scrape.

mod cost;
mod journal;
mod row;
mod served;
mod standing;

use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::runtime::Handle;

pub use journal::JournalMetrics;
pub use served::ServedRequest;
pub use standing::UpstreamStatus;

use cost::Cost;
use journal::Watched;
use row::{Named, Row};
use standing::UpstreamGauges;

use crate::model::Format;

/// From a reply out of memory to the longest thinking a client waits for.
const SECONDS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];

/// And one place more for what has none.
const FORMATS: usize = Format::EVERY.len() + 1;

pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    first_byte: Family<ModelLabels, Histogram>,
    whole: Family<ModelLabels, Histogram>,
    received: Family<FormatLabel, Counter>,
    sent: Family<FormatLabel, Counter>,
    in_flight: Gauge,
    tasks: Gauge,
    /// What runs the tasks that are counted: pingora makes it when the service begins.
    service: OnceLock<Handle>,
    upstream_failures: Family<FailureLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    estimated_tokens: Family<TokenLabels, Counter>,
    cost: Family<CostLabels, Cost>,
    reloads: Family<OutcomeLabel, Counter>,
    key_lookups: Family<OutcomeLabel, Counter>,
    /// Not there without a store.
    store_up: Family<NoLabels, Gauge>,
    /// Not there without one.
    limits_store_up: Family<NoLabels, Gauge>,
    limited_alone: Family<NoLabels, Counter>,
    standing: UpstreamGauges,
    journal: Watched,
    /// A family is asked with labels it could own. What they lead to is kept here by model and
    /// upstream, so that counting a request allocates nothing and searches once.
    rows: [Named<Row>; FORMATS],
    /// By key and model.
    costs: Named<Cost>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    format: &'static str,
    model: Arc<str>,
    upstream: Arc<str>,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    format: &'static str,
    model: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FormatLabel {
    format: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    upstream: Arc<str>,
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    model: Arc<str>,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CostLabels {
    key: Arc<str>,
    model: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

type NoLabels = [(&'static str, &'static str); 0];

/// Why an attempt at an upstream failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    Connect,
    Tls,
    Timeout,
    Reset,
    Status,
    Malformed,
    Cut,
    /// As many requests as it may have, and no room to wait.
    Full,
}

impl FailureCause {
    /// The word for it in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            FailureCause::Connect => "connect",
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
            limits_store_up: Family::default(),
            limited_alone: Family::default(),
            standing: UpstreamGauges::default(),
            journal: Watched::default(),
            rows: Default::default(),
            costs: Named::default(),
        };
        metrics.registered()
    }

    /// The registry adds the prefix, the unit and `_total` to the names, and a full stop to the help.
    fn registered(mut self) -> Metrics {
        let registry = &mut self.registry;
        registry.register(
            "requests",
            "Requests answered, by the status the client saw",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "first_byte",
            "From the request's arrival to the first byte of the reply",
            Unit::Seconds,
            self.first_byte.clone(),
        );
        registry.register_with_unit(
            "request",
            "From the request's arrival to the last byte of the reply",
            Unit::Seconds,
            self.whole.clone(),
        );
        registry.register_with_unit(
            "received",
            "Request bodies read from clients",
            Unit::Bytes,
            self.received.clone(),
        );
        registry.register_with_unit(
            "sent",
            "Reply bodies written to clients",
            Unit::Bytes,
            self.sent.clone(),
        );
        registry.register(
            "requests_in_flight",
            "Requests being served",
            self.in_flight.clone(),
        );
        registry.register(
            "tasks",
            "Tasks that serve clients and keep connections to upstreams",
            self.tasks.clone(),
        );
        registry.register(
            "upstream_failures",
            "Attempts that an upstream failed, also where another one then answered",
            self.upstream_failures.clone(),
        );
        registry.register(
            "tokens",
            "Tokens as upstreams counted them: input includes cached, output includes thinking",
            self.tokens.clone(),
        );
        registry.register(
            "estimated_tokens",
            "Tokens of requests that upstreams did not count in full, such as broken streams",
            self.estimated_tokens.clone(),
        );
        registry.register(
            "cost",
            "What requests have cost, in the currency of the model's prices",
            self.cost.clone(),
        );
        registry.register(
            "config_reloads",
            "Reloads of the config, taken or refused",
            self.reloads.clone(),
        );
        registry.register(
            "key_lookups",
            "API keys that were not known here and looked up in the store",
            self.key_lookups.clone(),
        );
        registry.register(
            "store_up",
            "Whether the store has answered when it was last asked",
            self.store_up.clone(),
        );
        registry.register(
            "limits_store_up",
            "Whether the Redis of shared limits answers",
            self.limits_store_up.clone(),
        );
        registry.register(
            "limited_alone",
            "Requests whose limits this process decided on alone although they are shared",
            self.limited_alone.clone(),
        );
        self.standing.register(registry);
        registry.register_collector(Box::new(self.journal.clone()));
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "The running version", Info::new(version));
        self
    }

    pub fn in_flight(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// How many requests are being served.
    pub fn requests_in_flight(&self) -> i64 {
        self.in_flight.get()
    }

    /// Called on a task of the service that serves the clients.
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

    /// From now on a scrape shows how the journal stands.
    pub fn watch_journal(&self, look: impl Fn() -> JournalMetrics + Send + Sync + 'static) {
        self.journal.watch(look);
    }

    pub fn reloaded(&self, ok: bool) {
        let outcome = if ok { "taken" } else { "refused" };
        self.reloads.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub fn looked_up(&self, outcome: &'static str) {
        let label = OutcomeLabel { outcome };
        self.key_lookups.get_or_create(&label).inc();
    }

    pub fn store_answers(&self, answers: bool) {
        self.store_up.get_or_create(&[]).set(i64::from(answers));
    }

    pub fn limits_store_answers(&self, answers: bool) {
        let up = self.limits_store_up.get_or_create(&[]);
        up.set(i64::from(answers));
        // Shown from the start.
        self.limited_alone.get_or_create(&[]).inc_by(0);
    }

    pub fn limited_alone(&self) {
        self.limited_alone.get_or_create(&[]).inc();
    }

    /// Every metric in the OpenMetrics text format.
    pub fn render(&self, upstreams: Vec<UpstreamStatus>) -> String {
        self.standing.show(upstreams, || {
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

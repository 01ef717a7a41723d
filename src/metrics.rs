//! Everything the gateway counts, under typed labels, and its text for a Prometheus scrape.

mod cost;
mod standing;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::runtime::Handle;

pub use standing::UpstreamStanding;

use cost::Cost;
use standing::Standing;

use crate::model::{Format, Money};
use crate::translate::Metered;

/// From a reply out of memory to the longest thinking a client waits for.
const SECONDS: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];

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
    standing: Standing,
    /// A family is asked with labels it could own. The names in them are kept here once and shared,
    /// so that counting a request allocates nothing.
    names: RwLock<HashSet<Arc<str>>>,
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

/// One request that has ended, however it ended.
#[derive(Debug, Clone)]
pub struct Served<'a> {
    /// Absent for what has no format: the public catalog, an unknown path.
    pub format: Option<Format>,
    /// A configured id, or empty: what clients make up must never become a label.
    pub model: &'a str,
    /// A configured name, or empty when no upstream answered.
    pub upstream: &'a str,
    pub status: u16,
    /// Absent when not one byte of a reply was sent.
    pub first_byte: Option<Duration>,
    pub total: Duration,
    pub received: u64,
    pub sent: u64,
    /// A configured name, or empty: without a key nothing costs.
    pub key: &'a str,
    pub metered: Option<Metered>,
    /// Absent where the model has no prices.
    pub cost: Option<Money>,
}

/// Why an attempt at an upstream failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Connect,
    Tls,
    Timeout,
    Reset,
    Status,
    Unreadable,
    Cut,
    /// As many requests as it may have, and no room to wait.
    Full,
}

impl Cause {
    /// The word for it in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Connect => "connect",
            Cause::Tls => "tls",
            Cause::Timeout => "timeout",
            Cause::Reset => "reset",
            Cause::Status => "status",
            Cause::Unreadable => "unreadable",
            Cause::Cut => "cut",
            Cause::Full => "full",
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
            standing: Standing::default(),
            names: RwLock::default(),
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
        self.standing.register(registry);
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "The running version", Info::new(version));
        self
    }

    pub fn in_flight(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// How many requests are being served.
    pub fn current(&self) -> i64 {
        self.in_flight.get()
    }

    /// Called on a task of the service that serves the clients.
    pub fn note_service(&self) {
        self.service.get_or_init(Handle::current);
    }

    pub fn served(&self, served: &Served<'_>) {
        let format = served.format.map_or("none", Format::name);
        let model = self.name(served.model);
        self.requests
            .get_or_create(&RequestLabels {
                format,
                model: model.clone(),
                upstream: self.name(served.upstream),
                status: served.status,
            })
            .inc();
        let bytes = FormatLabel { format };
        self.received.get_or_create(&bytes).inc_by(served.received);
        self.sent.get_or_create(&bytes).inc_by(served.sent);
        if let Some(metered) = &served.metered {
            self.count_tokens(&model, metered);
        }
        if let Some(cost) = served.cost.filter(|cost| !cost.is_zero()) {
            let (key, model) = (self.name(served.key), model.clone());
            self.cost
                .get_or_create(&CostLabels { key, model })
                .add(cost);
        }
        let times = ModelLabels { format, model };
        let total = served.total.as_secs_f64();
        self.whole.get_or_create(&times).observe(total);
        if let Some(first_byte) = served.first_byte {
            let first_byte = first_byte.as_secs_f64();
            self.first_byte.get_or_create(&times).observe(first_byte);
        }
    }

    fn count_tokens(&self, model: &Arc<str>, metered: &Metered) {
        let Metered { usage, estimated } = metered;
        let family = match estimated {
            true => &self.estimated_tokens,
            false => &self.tokens,
        };
        for (kind, count) in [
            ("input", usage.input),
            ("cached", usage.cached),
            ("cache_written", usage.cache_written),
            ("output", usage.output),
            ("thinking", usage.thinking),
        ] {
            // Most requests have two kinds of five: the others are not worth a lookup.
            if count > 0 {
                let model = model.clone();
                let labels = TokenLabels { model, kind };
                family.get_or_create(&labels).inc_by(count);
            }
        }
    }

    pub fn upstream_failed(&self, upstream: &str, cause: Cause) {
        let labels = FailureLabels {
            upstream: self.name(upstream),
            cause: cause.name(),
        };
        self.upstream_failures.get_or_create(&labels).inc();
    }

    pub fn reloaded(&self, ok: bool) {
        let outcome = if ok { "taken" } else { "refused" };
        self.reloads.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Every metric in the OpenMetrics text format.
    pub fn render(&self, upstreams: Vec<UpstreamStanding>) -> String {
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

    /// The shared copy of a configured name.
    fn name(&self, name: &str) -> Arc<str> {
        // A set of names is whole after any panic, so a poisoned lock is no reason to stop counting.
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = names.get(name) {
            return shared.clone();
        }
        drop(names);
        let shared: Arc<str> = name.into();
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        names.insert(shared.clone());
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Usage;

    const SERVED: Served<'static> = Served {
        format: Some(Format::Chat),
        model: "acme-large",
        upstream: "acme",
        status: 200,
        first_byte: Some(Duration::from_millis(2)),
        total: Duration::from_secs(3),
        received: 100,
        sent: 2000,
        key: "dev",
        metered: Some(Metered {
            usage: USAGE,
            estimated: false,
        }),
        cost: None,
    };

    const USAGE: Usage = Usage {
        input: 10,
        cached: 4,
        cache_written: 0,
        output: 7,
        thinking: 3,
        audio_input: 0,
        audio_output: 0,
        image_output: 0,
    };

    #[test]
    fn costs_add_up_exactly_and_estimates_stand_apart() {
        let metrics = Metrics::new();
        // As floats these would not come to 0.3.
        for _ in 0..3 {
            metrics.served(&Served {
                metered: Some(Metered {
                    usage: USAGE,
                    estimated: true,
                }),
                cost: Money::parse("0.1"),
                ..SERVED
            });
        }
        metrics.served(&Served {
            cost: Some(Money::ZERO),
            key: "other",
            ..SERVED
        });
        assert_lines(
            &metrics,
            &[
                r#"omniglot_cost_total{key="dev",model="acme-large"} 0.3"#,
                r#"omniglot_estimated_tokens_total{model="acme-large",kind="output"} 21"#,
                r#"omniglot_tokens_total{model="acme-large",kind="output"} 7"#,
            ],
        );
        assert!(!metrics.render(Vec::new()).contains("other"));
    }

    #[track_caller]
    fn assert_lines(metrics: &Metrics, expected: &[&str]) {
        let text = metrics.render(Vec::new());
        for line in expected {
            assert!(
                text.lines().any(|written| written == *line),
                "{line} in\n{text}"
            );
        }
    }

    #[test]
    fn a_served_request_shows_in_every_metric_about_requests() {
        let metrics = Metrics::new();
        metrics.served(&SERVED);
        metrics.served(&SERVED);
        metrics.served(&Served {
            status: 429,
            upstream: "",
            metered: None,
            ..SERVED
        });
        assert_lines(
            &metrics,
            &[
                r#"omniglot_requests_total{format="chat",model="acme-large",upstream="acme",status="200"} 2"#,
                r#"omniglot_requests_total{format="chat",model="acme-large",upstream="",status="429"} 1"#,
                r#"omniglot_first_byte_seconds_bucket{le="0.001",format="chat",model="acme-large"} 0"#,
                r#"omniglot_first_byte_seconds_bucket{le="0.0025",format="chat",model="acme-large"} 3"#,
                r#"omniglot_request_seconds_bucket{le="2.5",format="chat",model="acme-large"} 0"#,
                r#"omniglot_request_seconds_bucket{le="5.0",format="chat",model="acme-large"} 3"#,
                r#"omniglot_request_seconds_bucket{le="300.0",format="chat",model="acme-large"} 3"#,
                r#"omniglot_request_seconds_sum{format="chat",model="acme-large"} 9.0"#,
                r#"omniglot_received_bytes_total{format="chat"} 300"#,
                r#"omniglot_sent_bytes_total{format="chat"} 6000"#,
                r#"omniglot_tokens_total{model="acme-large",kind="input"} 20"#,
                r#"omniglot_tokens_total{model="acme-large",kind="cached"} 8"#,
                r#"omniglot_tokens_total{model="acme-large",kind="output"} 14"#,
                r#"omniglot_tokens_total{model="acme-large",kind="thinking"} 6"#,
            ],
        );
        assert!(!metrics.render(Vec::new()).contains("cache_written"));
    }

    #[test]
    fn a_request_without_format_or_reply_is_counted_too() {
        let metrics = Metrics::new();
        metrics.served(&Served {
            format: None,
            model: "",
            first_byte: None,
            ..SERVED
        });
        assert_lines(
            &metrics,
            &[
                r#"omniglot_requests_total{format="none",model="",upstream="acme",status="200"} 1"#,
                r#"omniglot_request_seconds_count{format="none",model=""} 1"#,
            ],
        );
        assert!(
            !metrics
                .render(Vec::new())
                .contains("first_byte_seconds_count")
        );
    }

    #[test]
    fn failures_reloads_and_the_version_are_told() {
        let metrics = Metrics::new();
        metrics.upstream_failed("acme", Cause::Tls);
        metrics.upstream_failed("acme", Cause::Tls);
        metrics.upstream_failed("acme", Cause::Unreadable);
        metrics.reloaded(true);
        metrics.reloaded(false);
        let version = env!("CARGO_PKG_VERSION");
        assert_lines(
            &metrics,
            &[
                r#"omniglot_upstream_failures_total{upstream="acme",cause="tls"} 2"#,
                r#"omniglot_upstream_failures_total{upstream="acme",cause="unreadable"} 1"#,
                r#"omniglot_config_reloads_total{outcome="taken"} 1"#,
                r#"omniglot_config_reloads_total{outcome="refused"} 1"#,
                &format!(r#"omniglot_build_info{{version="{version}"}} 1"#),
                "# EOF",
            ],
        );
    }

    #[test]
    fn in_flight_returns_to_zero_also_after_a_panic() {
        let metrics = Metrics::new();
        let first = metrics.in_flight();
        let second = metrics.in_flight();
        assert_eq!(metrics.current(), 2);
        assert_lines(&metrics, &["omniglot_requests_in_flight 2"]);
        drop(first);
        assert_eq!(metrics.current(), 1);
        let panicked = std::panic::catch_unwind(move || {
            let _held = second;
            std::panic::resume_unwind(Box::new("cut"));
        });
        assert!(panicked.is_err());
        assert_eq!(metrics.current(), 0);
    }

    #[test]
    fn names_are_kept_once_and_counts_of_many_threads_add_up() {
        let metrics = Metrics::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| metrics.served(&SERVED)));
            }
        });
        assert_lines(
            &metrics,
            &[
                r#"omniglot_requests_total{format="chat",model="acme-large",upstream="acme",status="200"} 400"#,
            ],
        );
        assert_eq!(metrics.names.read().expect("not poisoned").len(), 2);
        assert!(Arc::ptr_eq(&metrics.name("acme"), &metrics.name("acme")));
    }
}

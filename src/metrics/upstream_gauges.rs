//! How upstreams stand at the moment of a scrape.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UpstreamLabel {
    upstream: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabels {
    upstream: Arc<str>,
    model: Arc<str>,
}

/// Gauges that are set when somebody looks.
#[derive(Default)]
pub(super) struct UpstreamGauges {
    in_flight: Family<UpstreamLabel, Gauge>,
    waiting: Family<UpstreamLabel, Gauge>,
    down: Family<UpstreamLabel, Gauge>,
    open: Family<TargetLabels, Gauge>,
    /// Two scrapes at once must not mix.
    looking: Mutex<()>,
}

/// One upstream as it stands.
pub struct UpstreamStatus {
    pub upstream: Arc<str>,
    pub in_flight: u64,
    pub waiting: u64,
    /// What its health check says; absent: it has none.
    pub down: Option<bool>,
    /// Its models, and whether the breaker of each is open.
    pub models: Vec<(Arc<str>, bool)>,
}

impl UpstreamGauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "upstream_requests_in_flight",
            "Requests that an upstream is serving",
            self.in_flight.clone(),
        );
        registry.register(
            "upstream_requests_waiting",
            "Requests that wait for a place at an upstream",
            self.waiting.clone(),
        );
        registry.register(
            "upstream_down",
            "1 where an upstream's health check fails",
            self.down.clone(),
        );
        registry.register(
            "upstream_breaker_open",
            "1 where a model of an upstream keeps failing and is left alone",
            self.open.clone(),
        );
    }

    /// Sets every gauge and runs what reads them.
    pub(super) fn show<T>(&self, all: Vec<UpstreamStatus>, look: impl FnOnce() -> T) -> T {
        let _alone = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        self.in_flight.clear();
        self.waiting.clear();
        self.down.clear();
        self.open.clear();
        for standing in all {
            let upstream = standing.upstream;
            let label = UpstreamLabel {
                upstream: upstream.clone(),
            };
            let set = |family: &Family<UpstreamLabel, Gauge>, value: u64| {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                family.get_or_create(&label).set(value);
            };
            set(&self.in_flight, standing.in_flight);
            set(&self.waiting, standing.waiting);
            if let Some(down) = standing.down {
                set(&self.down, u64::from(down));
            }
            for (model, open) in standing.models {
                let labels = TargetLabels {
                    upstream: upstream.clone(),
                    model,
                };
                self.open.get_or_create(&labels).set(i64::from(open));
            }
        }
        look()
    }
}

//! Gauges of the upstreams, set at the time of a scrape.

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

/// Gauges that are set at every scrape.
#[derive(Default)]
pub(super) struct UpstreamGauges {
    in_flight: Family<UpstreamLabel, Gauge>,
    waiting: Family<UpstreamLabel, Gauge>,
    down: Family<UpstreamLabel, Gauge>,
    open: Family<TargetLabels, Gauge>,
    discovered: Family<UpstreamLabel, Gauge>,
    discovery_failing: Family<UpstreamLabel, Gauge>,
    /// Serializes scrapes.
    scraping: Mutex<()>,
}

/// The state of an upstream.
pub struct UpstreamStatus {
    pub upstream: Arc<str>,
    pub in_flight: u64,
    pub waiting: u64,
    /// The result of the health check; absent: it has none.
    pub down: Option<bool>,
    /// How many models it lists, and whether the list could not be read the last time; absent: it is not read.
    pub discovered: Option<(usize, bool)>,
    /// Its models, and whether the circuit breaker of each is open.
    pub models: Vec<(Arc<str>, bool)>,
}

impl UpstreamGauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "upstream_requests_in_flight",
            "Requests in flight at an upstream",
            self.in_flight.clone(),
        );
        registry.register(
            "upstream_requests_waiting",
            "Requests queued for an upstream",
            self.waiting.clone(),
        );
        registry.register(
            "upstream_down",
            "1 if the health check of an upstream fails",
            self.down.clone(),
        );
        registry.register(
            "upstream_breaker_open",
            "1 if the circuit breaker of a model at an upstream is open",
            self.open.clone(),
        );
        registry.register(
            "upstream_discovered_models",
            "Models that an upstream lists",
            self.discovered.clone(),
        );
        registry.register(
            "upstream_discovery_failing",
            "1 if the list of models of an upstream could not be read the last time",
            self.discovery_failing.clone(),
        );
    }

    /// Sets every gauge and runs `encode`, which reads them.
    pub(super) fn set<T>(&self, all: Vec<UpstreamStatus>, encode: impl FnOnce() -> T) -> T {
        let _alone = self.scraping.lock().unwrap_or_else(PoisonError::into_inner);
        self.in_flight.clear();
        self.waiting.clear();
        self.down.clear();
        self.open.clear();
        self.discovered.clear();
        self.discovery_failing.clear();
        for status in all {
            let upstream = status.upstream;
            let label = UpstreamLabel {
                upstream: upstream.clone(),
            };
            let set_gauge = |family: &Family<UpstreamLabel, Gauge>, value: u64| {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                family.get_or_create(&label).set(value);
            };
            set_gauge(&self.in_flight, status.in_flight);
            set_gauge(&self.waiting, status.waiting);
            if let Some(down) = status.down {
                set_gauge(&self.down, u64::from(down));
            }
            if let Some((count, is_failing)) = status.discovered {
                set_gauge(&self.discovered, count as u64);
                set_gauge(&self.discovery_failing, u64::from(is_failing));
            }
            for (model, open) in status.models {
                let labels = TargetLabels {
                    upstream: upstream.clone(),
                    model,
                };
                self.open.get_or_create(&labels).set(i64::from(open));
            }
        }
        encode()
    }
}

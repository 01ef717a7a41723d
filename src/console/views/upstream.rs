//! Upstreams and the health of their models.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::runtime::{HealthStatus, Snapshot, Upstream};

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct UpstreamView {
    pub name: String,
    /// The formats that it speaks.
    pub formats: Vec<&'static str>,
    /// Where it is.
    pub address: String,
    /// What the health check found: `up` or `down`; null: it has none.
    pub health_check: Option<&'static str>,
    /// Requests that it answers now.
    pub in_flight: u64,
    /// How many it may have; null: no limit.
    pub max_in_flight: Option<u64>,
    /// Requests that wait for a place.
    pub waiting: u64,
    /// Attempts since this gateway began, and those of them that failed.
    pub requests: u64,
    pub failed: u64,
    /// How many models it lists; null: its list is not read.
    pub listed_models: Option<usize>,
    /// The list could not be read the last time.
    pub listing_fails: bool,
    pub models: Vec<UpstreamModelView>,
}

/// One model at an upstream.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct UpstreamModelView {
    /// By the upstream's name of it.
    pub model: String,
    /// The circuit breaker: `closed`, `open`, `half_open` or `off`.
    pub breaker: &'static str,
    /// For how many more seconds it stays open.
    pub open_seconds: u64,
    /// For how many more seconds the upstream asked not to be asked.
    pub cool_down_seconds: u64,
    /// In the last 30 seconds at most.
    pub recent_requests: u32,
    pub recent_failed: u32,
    /// Since this gateway began.
    pub requests: u64,
    pub failed: u64,
}

impl UpstreamView {
    pub fn new(upstream: &Upstream, snapshot: &Snapshot, now: Instant) -> UpstreamView {
        let targets = snapshot.models.iter().flat_map(|model| &model.targets);
        let targets = targets.filter(|target| target.upstream.name == upstream.name);
        let has_breaker = upstream.breaker.is_some();
        // Several models may be served by the same one of the upstream.
        let models: BTreeMap<&str, HealthStatus> = targets
            .map(|target| (&*target.model, target.health.status(now)))
            .collect();
        let models: Vec<UpstreamModelView> = models
            .into_iter()
            .map(|(model, status)| UpstreamModelView::new(model, status, has_breaker))
            .collect();
        let others = upstream.other_formats.iter();
        let formats = others.map(|other| other.format.name());
        let discovery = upstream.discovery.as_ref();
        UpstreamView {
            name: upstream.name.to_string(),
            formats: std::iter::once(upstream.format.name())
                .chain(formats)
                .collect(),
            address: upstream.base.to_string(),
            health_check: upstream
                .health
                .as_ref()
                .map(|_| match upstream.load.is_down() {
                    true => "down",
                    false => "up",
                }),
            in_flight: upstream.load.in_flight(),
            max_in_flight: upstream.concurrency.max_in_flight,
            waiting: upstream.load.queued(),
            requests: models.iter().map(|model| model.requests).sum(),
            failed: models.iter().map(|model| model.failed).sum(),
            listed_models: discovery.map(|discovery| discovery.models.count()),
            listing_fails: discovery.is_some_and(|discovery| discovery.models.is_failing()),
            models,
        }
    }

    pub fn is_down(&self) -> bool {
        self.health_check == Some("down")
    }

    /// Something is wrong with it now.
    pub fn is_troubled(&self) -> bool {
        let is_troubled = |model: &UpstreamModelView| !matches!(model.breaker, "closed" | "off");
        self.is_down() || self.listing_fails || self.models.iter().any(is_troubled)
    }

    pub fn failed_share(&self) -> String {
        share(self.failed, self.requests)
    }
}

impl UpstreamModelView {
    fn new(model: &str, status: HealthStatus, has_breaker: bool) -> UpstreamModelView {
        UpstreamModelView {
            model: model.to_owned(),
            breaker: match has_breaker {
                true => status.breaker,
                false => "off",
            },
            open_seconds: seconds(status.open_for),
            cool_down_seconds: seconds(status.cool_down),
            recent_requests: status.recent_requests,
            recent_failed: status.recent_failed,
            requests: status.requests,
            failed: status.failed,
        }
    }

    pub fn failed_share(&self) -> String {
        share(self.failed, self.requests)
    }
}

/// Whole seconds, of which the last has begun.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// A share in percent, with one digit behind the point.
fn share(part: u64, whole: u64) -> String {
    let tenths = match u128::from(whole) {
        0 => 0,
        whole => (u128::from(part) * 1000 + whole / 2) / whole,
    };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

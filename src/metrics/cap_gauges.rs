//! How much of their spending caps keys have used, set at the time of a scrape.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabel {
    key: Arc<str>,
}

/// A key with a spending cap.
pub struct CapStatus {
    pub key: Arc<str>,
    /// What is spent and reserved of the cap, from 0 to 1.
    pub used: f64,
}

#[derive(Default)]
pub(super) struct CapGauges(Family<KeyLabel, Gauge<f64, AtomicU64>>);

impl CapGauges {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "cap_used",
            "What a key has spent and reserved of its spending cap in this period, from 0 to 1",
            Unit::Other("ratio".to_owned()),
            self.0.clone(),
        );
    }

    pub(super) fn set(&self, all: Vec<CapStatus>) {
        self.0.clear();
        for CapStatus { key, used } in all {
            self.0.get_or_create(&KeyLabel { key }).set(used);
        }
    }
}

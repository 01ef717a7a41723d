//! A counter of money that stays exact; only the scrape gets a float.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::model::Money;

/// A counter of money: sums of floats would drift, integer counters would round.
#[derive(Debug, Clone, Default)]
pub(super) struct CostCounter(Arc<Mutex<Money>>);

impl CostCounter {
    pub(super) fn add(&self, amount: Money) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += amount;
    }
}

impl TypedMetric for CostCounter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for CostCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let sum = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        encoder.encode_counter::<NoLabelSet, f64, f64>(&sum.to_f64(), None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

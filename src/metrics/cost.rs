//! A sum of money that stays exact; only whoever reads it gets a float.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::model::Money;

/// A counter: floats that are added up drift, and counters of whole numbers would have to round.
#[derive(Debug, Clone, Default)]
pub(super) struct Cost(Arc<Mutex<Money>>);

impl Cost {
    pub(super) fn add(&self, amount: Money) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += amount;
    }
}

impl TypedMetric for Cost {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for Cost {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let sum = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        encoder.encode_counter::<NoLabelSet, f64, f64>(&sum.to_f64(), None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

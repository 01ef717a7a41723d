//! Counts a request that has ended.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

use super::cost::CostCounter;
use super::label_map::{ModelMetrics, TOKEN_KINDS};
use super::labels::{CostLabels, FormatLabel, ModelLabels, RequestLabels, TokenLabels};
use super::{FORMATS, Metrics};
use crate::formats::Operation;
use crate::model::{Format, Money};
use crate::translate::MeasuredUsage;

/// One request that has ended, however it ended.
#[derive(Debug, Clone)]
pub struct ServedRequest<'a> {
    /// The name of a format or of an operation. Absent for requests without a format: the public catalog, an unknown
    /// path.
    pub format: Option<&'static str>,
    /// A configured id, or empty: unchecked client input must never become a label.
    pub model: &'a str,
    /// A configured name, or empty when no upstream answered.
    pub upstream: &'a str,
    pub status: u16,
    /// Absent when no byte of a response was sent.
    pub first_byte: Option<Duration>,
    /// Absent when no upstream has answered.
    pub added: Option<Duration>,
    pub total: Duration,
    pub received: u64,
    pub sent: u64,
    /// A configured name, or empty: without a key nothing costs.
    pub key: &'a str,
    pub metered: Option<MeasuredUsage>,
    /// Absent where the model has no prices.
    pub cost: Option<Money>,
}

/// The place of a label in `by_format`; the last is for requests without one.
fn place_of(label: Option<&str>) -> usize {
    let formats = Format::EVERY.iter().map(|format| format.name());
    let mut labels = formats.chain(Operation::LABELS);
    let place = label.and_then(|label| labels.position(|known| known == label));
    place.unwrap_or(FORMATS - 1)
}

impl Metrics {
    pub fn record_request(&self, served: &ServedRequest<'_>) {
        let (model, upstream) = (served.model, served.upstream);
        let place = place_of(served.format);
        let format = served.format.unwrap_or("none");
        let make = || self.row(format, model);
        self.by_format[place].with((model, upstream), make, |row| self.count(row, served));
        if let Some(cost) = served.cost.filter(|cost| !cost.is_zero()) {
            let make = || {
                let (key, model) = (served.key.into(), model.into());
                self.cost.get_or_create_owned(&CostLabels { key, model })
            };
            let add = |sum: &CostCounter| sum.add(cost);
            self.costs.with((served.key, model), make, add);
        }
    }

    fn count(&self, row: &ModelMetrics, served: &ServedRequest<'_>) {
        match served.status {
            200 => row.ok.get_or_init(|| self.answered(row, served)).inc(),
            _ => self.answered(row, served).inc(),
        };
        row.received.inc_by(served.received);
        row.sent.inc_by(served.sent);
        row.whole.observe(served.total.as_secs_f64());
        if let Some(first_byte) = served.first_byte {
            let make = || self.first_byte.get_or_create_owned(&row.labels);
            let histogram = row.first_byte.get_or_init(make);
            histogram.observe(first_byte.as_secs_f64());
        }
        if let Some(added) = served.added {
            let make = || self.added.get_or_create_owned(&row.labels);
            let histogram = row.added.get_or_init(make);
            histogram.observe(added.as_secs_f64());
        }
        if let Some(metered) = &served.metered {
            self.count_tokens(row, metered);
        }
    }

    fn row(&self, format: &'static str, model: &str) -> ModelMetrics {
        let bytes = FormatLabel { format };
        let labels = ModelLabels {
            format,
            model: model.into(),
        };
        ModelMetrics {
            ok: OnceLock::new(),
            received: self.received.get_or_create_owned(&bytes),
            sent: self.sent.get_or_create_owned(&bytes),
            whole: self.whole.get_or_create_owned(&labels),
            first_byte: OnceLock::new(),
            added: OnceLock::new(),
            tokens: Default::default(),
            estimated: Default::default(),
            labels,
        }
    }

    fn answered(&self, row: &ModelMetrics, served: &ServedRequest<'_>) -> Counter {
        self.requests.get_or_create_owned(&RequestLabels {
            format: row.labels.format,
            model: row.labels.model.clone(),
            upstream: served.upstream.into(),
            status: served.status,
        })
    }

    fn count_tokens(&self, row: &ModelMetrics, metered: &MeasuredUsage) {
        let MeasuredUsage { usage, estimated } = metered;
        let (family, counters) = match estimated {
            true => (&self.estimated_tokens, &row.estimated),
            false => (&self.tokens, &row.tokens),
        };
        let counts = [
            usage.input,
            usage.cached,
            usage.cache_written,
            usage.output,
            usage.thinking,
        ];
        for ((kind, counter), count) in TOKEN_KINDS.into_iter().zip(counters).zip(counts) {
            // Zeros create no time series.
            if count > 0 {
                let make = || {
                    let model = row.labels.model.clone();
                    family.get_or_create_owned(&TokenLabels { model, kind })
                };
                counter.get_or_init(make).inc_by(count);
            }
        }
    }
}

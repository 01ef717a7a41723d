//! Metrics of the journal, read at the time of a scrape; absent without a journal.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The state of the journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalMetrics {
    pub bytes: u64,
    pub limit: u64,
    pub is_nearly_full: bool,
    pub waiting: u64,
    pub flushed: u64,
    pub lost: u64,
    pub damaged: u64,
    pub seconds_since_success: f64,
}

type ReadJournal = Box<dyn Fn() -> JournalMetrics + Send + Sync>;

/// Reads the state of the journal at every scrape.
#[derive(Clone, Default)]
pub(super) struct JournalCollector(Arc<OnceLock<ReadJournal>>);

impl JournalCollector {
    pub(super) fn set_source(&self, read: impl Fn() -> JournalMetrics + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(read));
    }
}

impl fmt::Debug for JournalCollector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JournalCollector")
    }
}

impl Collector for JournalCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(read) = self.0.get() else {
            return Ok(());
        };
        let status = read();
        let mut show = |name, help, unit: Option<Unit>, metric: &dyn EncodeMetric| {
            let out = encoder.encode_descriptor(name, help, unit.as_ref(), metric.metric_type())?;
            metric.encode(out)
        };
        for (name, help, unit, value) in [
            (
                "journal",
                "Size of the journal on disk",
                Some(Unit::Bytes),
                status.bytes,
            ),
            (
                "journal_limit",
                "Maximum size of the journal (journal.limit)",
                Some(Unit::Bytes),
                status.limit,
            ),
            (
                "journal_nearly_full",
                "1 if the journal has reached four fifths of its limit",
                None,
                u64::from(status.is_nearly_full),
            ),
            (
                "journal_waiting",
                "Usage records that are not in the store yet",
                None,
                status.waiting,
            ),
        ] {
            show(name, help, unit, &ConstGauge::new(value))?;
        }
        for (name, help, value) in [
            (
                "journal_carried",
                "Usage records that were flushed from the journal to the store",
                status.flushed,
            ),
            (
                "journal_lost",
                "Usage records that could not be written to the journal",
                status.lost,
            ),
            (
                "journal_damaged",
                "Damaged lines of the journal",
                status.damaged,
            ),
        ] {
            show(name, help, None, &ConstCounter::new(value))?;
        }
        show(
            "journal_behind",
            "Time since a flush to the store last succeeded or had nothing to do",
            Some(Unit::Seconds),
            &ConstGauge::new(status.seconds_since_success),
        )
    }
}

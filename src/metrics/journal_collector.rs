//! How the journal stands at the moment of a scrape; without a journal there is nothing to show.

use std::fmt;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// A journal as it stands.
#[derive(Debug, Clone, Copy)]
pub struct JournalMetrics {
    pub bytes: u64,
    pub limit: u64,
    pub is_nearly_full: bool,
    pub waiting: u64,
    pub carried: u64,
    pub lost: u64,
    pub damaged: u64,
    pub seconds_since_success: f64,
}

type Look = Box<dyn Fn() -> JournalMetrics + Send + Sync>;

/// Asked when somebody looks.
#[derive(Clone, Default)]
pub(super) struct Watched(Arc<OnceLock<Look>>);

impl Watched {
    pub(super) fn watch(&self, look: impl Fn() -> JournalMetrics + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(look));
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Watched")
    }
}

impl Collector for Watched {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(look) = self.0.get() else {
            return Ok(());
        };
        let standing = look();
        let mut show = |name, help, unit: Option<Unit>, metric: &dyn EncodeMetric| {
            let out = encoder.encode_descriptor(name, help, unit.as_ref(), metric.metric_type())?;
            metric.encode(out)
        };
        for (name, help, unit, value) in [
            (
                "journal",
                "What the journal takes on the disk",
                Some(Unit::Bytes),
                standing.bytes,
            ),
            (
                "journal_limit",
                "What it may take at most",
                Some(Unit::Bytes),
                standing.limit,
            ),
            (
                "journal_nearly_full",
                "1 where four fifths of that are taken",
                None,
                u64::from(standing.is_nearly_full),
            ),
            (
                "journal_waiting",
                "Receipts that the store does not have yet",
                None,
                standing.waiting,
            ),
        ] {
            show(name, help, unit, &ConstGauge::new(value))?;
        }
        for (name, help, value) in [
            (
                "journal_carried",
                "Receipts that the store has taken from the journal",
                standing.carried,
            ),
            (
                "journal_lost",
                "Receipts that could not be written to the journal",
                standing.lost,
            ),
            (
                "journal_damaged",
                "Lines of the journal that could not be read again",
                standing.damaged,
            ),
        ] {
            show(name, help, None, &ConstCounter::new(value))?;
        }
        show(
            "journal_behind",
            "Since receipts were last carried, or none were waiting",
            Some(Unit::Seconds),
            &ConstGauge::new(standing.seconds_since_success),
        )
    }
}

//! Opens the journal before the first request, and shows it in the metrics.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::config;
use crate::journal::Journal;
use crate::metrics::{JournalMetrics, Metrics};

/// Opens the journal; without it the gateway does not start.
pub(super) fn open(settings: &config::JournalConfig, metrics: &Metrics) -> Result<Arc<Journal>> {
    let journal = Journal::open(&settings.path, settings.limit).with_context(|| {
        let path = settings.path.display();
        format!("cannot keep a journal in {path} (journal.path)")
    })?;
    let journal = Arc::new(journal);
    let watched = journal.clone();
    metrics.collect_journal(move || {
        let status = watched.status();
        JournalMetrics {
            bytes: status.bytes,
            limit: status.limit,
            is_nearly_full: status.is_nearly_full,
            waiting: status.waiting,
            flushed: status.flushed,
            lost: status.lost,
            damaged: status.damaged,
            seconds_since_success: status.since_success.as_secs_f64(),
        }
    });
    Ok(journal)
}

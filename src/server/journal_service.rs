//! The journal beside the gateway: opened before the first request, and watched by the metrics.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::config;
use crate::journal::Journal;
use crate::metrics::{JournalMetrics, Metrics};

/// Where nothing can be kept, nothing is served.
pub(super) fn open(settings: &config::JournalConfig, metrics: &Metrics) -> Result<Arc<Journal>> {
    let journal = Journal::open(&settings.path, settings.limit).with_context(|| {
        let path = settings.path.display();
        format!("cannot keep a journal in {path} (journal.path)")
    })?;
    let journal = Arc::new(journal);
    let watched = journal.clone();
    metrics.watch_journal(move || {
        let standing = watched.standing();
        JournalMetrics {
            bytes: standing.bytes,
            limit: standing.limit,
            is_nearly_full: standing.is_nearly_full,
            waiting: standing.waiting,
            carried: standing.carried,
            lost: standing.lost,
            damaged: standing.damaged,
            seconds_since_success: standing.since_success.as_secs_f64(),
        }
    });
    Ok(journal)
}

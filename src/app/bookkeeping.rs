//! The journal beside the gateway: opened before the first request, carried until the last.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;

use crate::config;
use crate::journal::{self, Books, Journal};
use crate::metrics::{JournalStanding, Metrics};

/// Where nothing can be kept, nothing is served.
pub(super) fn open(settings: &config::Journal, metrics: &Metrics) -> Result<Arc<Journal>> {
    let journal = Journal::open(&settings.path, settings.limit).with_context(|| {
        let path = settings.path.display();
        format!("cannot keep a journal in {path} (journal.path)")
    })?;
    let journal = Arc::new(journal);
    let watched = journal.clone();
    metrics.watch_journal(move || {
        let standing = watched.standing();
        JournalStanding {
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

/// Receipts on their way to the books, until the process is gone: those of the last requests too.
pub(super) struct Bookkeeping {
    pub(super) journal: Arc<Journal>,
    pub(super) books: Arc<dyn Books>,
}

#[async_trait]
impl BackgroundService for Bookkeeping {
    async fn start(&self, _shutdown: ShutdownWatch) {
        journal::keep(self.journal.clone(), self.books.clone()).await;
    }
}

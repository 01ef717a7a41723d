//! Opens the journal before the first request, and shows it in the metrics.
//!
//! A process and its successor run at the same time, and a journal belongs to one process: the successor has it in a
//! folder beside that of its predecessor. What a process leaves in one of the two is flushed by the next.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::sleep;

use super::upgrade::Handover;
use crate::config;
use crate::journal::{self, Journal, UsageSink};
use crate::metrics::{JournalMetrics, Metrics};

/// What the name of the second folder ends with.
const SUCCESSOR: &str = "-successor";

/// How often a journal that another process uses is looked at.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Opens the journal; without it the gateway does not start.
pub(super) fn open(
    settings: &config::JournalConfig,
    metrics: &Metrics,
    handover: &Handover,
) -> Result<Arc<Journal>> {
    let (path, limit) = (&settings.path, settings.limit);
    let opened = match handover.has_predecessor() {
        false => Journal::open(path, limit),
        // The predecessor of a successor has the second folder.
        true => Journal::open(path, limit).or_else(|_| Journal::open(&beside(path), limit)),
    };
    let journal = opened.with_context(|| {
        let path = path.display();
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

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(SUCCESSOR);
    name.into()
}

/// The folder of the two that this process does not use.
pub(super) fn other_folder(settings: &config::JournalConfig, own: &Journal) -> PathBuf {
    match own.folder() == settings.path {
        true => beside(&settings.path),
        false => settings.path.clone(),
    }
}

/// Flushes what another process has left in a folder, once that process has ended.
pub(super) async fn flush_other(folder: PathBuf, limit: u64, sink: Arc<dyn UsageSink>) {
    if !folder.exists() {
        return;
    }
    let left = loop {
        let folder = folder.clone();
        let opened = tokio::task::spawn_blocking(move || Journal::open(&folder, limit)).await;
        match opened {
            Ok(Ok(left)) => break Arc::new(left),
            Ok(Err(_)) => sleep(RETRY_INTERVAL).await,
            Err(_) => return,
        }
    };
    let flushing = journal::run_background(left.clone(), sink);
    tokio::select! {
        () = left.previous_flushed() => {}
        () = flushing => {}
    }
}

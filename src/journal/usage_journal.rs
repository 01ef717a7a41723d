//! The journal itself: appends usage records to segments and knows how much of them is flushed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{Notify, SetOnce};

use super::log_limiter::LogLimiter;
use super::private_file;
use super::record_line;
use super::segment_set::{JournalSegment, SegmentSet};
use super::segment_writer::{AppendError, SegmentWriter};
use crate::model::UsageRecord;

const LOCK: &str = "lock";

/// Maximum number of segment writers; more threads share them, as each writer fills batches of its own.
const MAX_WRITERS: usize = 4;

/// Minimum time between two log lines about lost records.
const LOST_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Where usage records are stored for good.
#[async_trait]
pub trait UsageSink: Send + Sync {
    /// Stores all of the records or none. Records whose id is known stay as they are; returns how many were new.
    async fn record(&self, records: &[UsageRecord<'_>]) -> Result<usize, String>;
}

/// Keeps usage records on disk until the sink has them. Belongs to one process; its threads share it.
pub struct Journal {
    pub(super) folder: PathBuf,
    pub(super) segments: SegmentSet,
    writers: Box<[Mutex<SegmentWriter>]>,
    pub(super) counters: JournalCounters,
    began: Instant,
    lost_log: LogLimiter,
    /// Set when the sink has all records of earlier processes.
    previous_flushed: SetOnce<()>,
    /// Notified when the flusher must not pause.
    pub(super) flush_requested: Notify,
    /// Locked for as long as the journal is open.
    _lock: File,
}

#[derive(Default)]
pub(super) struct JournalCounters {
    pub(super) flushed: AtomicU64,
    lost: AtomicU64,
    pub(super) damaged: AtomicU64,
    /// Batches that the sink refused.
    pub(super) failures: AtomicU64,
    /// When a flush last succeeded or had nothing to do, in milliseconds since the start.
    last_success: AtomicU64,
}

/// The state of a journal, for metrics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JournalStatus {
    pub bytes: u64,
    pub limit: u64,
    pub is_nearly_full: bool,
    /// Records that the sink does not have yet.
    pub waiting: u64,
    pub flushed: u64,
    /// Records that could not be written.
    pub lost: u64,
    /// Lines that could not be decoded.
    pub damaged: u64,
    /// Time since a flush last succeeded or had nothing to do.
    pub since_success: Duration,
}

thread_local! {
    /// The buffer that a line is encoded into; reused, so that a record allocates nothing.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Which of the writers a thread uses.
    static SLOT: usize = {
        static NEXT_SLOT: AtomicUsize = AtomicUsize::new(0);
        NEXT_SLOT.fetch_add(1, Ordering::Relaxed)
    };
}

impl Journal {
    /// Locks a folder and opens the journal in it, with the records that an earlier process left.
    pub fn open(folder: &Path, limit: u64) -> io::Result<Journal> {
        private_file::create_folder(folder)?;
        let lock = private_file::options()
            .create(true)
            .truncate(true)
            .open(folder.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = "another process uses it; give each a folder of its own";
                return Err(io::Error::other(message));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let segments = SegmentSet::open(folder, limit)?;
        let previous_flushed = match segments.previous() {
            0 => SetOnce::new_with(Some(())),
            count => {
                log::info!(
                    "journal: {count} usage records of an earlier process are to be flushed"
                );
                SetOnce::new()
            }
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let writers = (0..threads.min(MAX_WRITERS)).map(|_| Mutex::default());
        Ok(Journal {
            folder: folder.to_owned(),
            segments,
            writers: writers.collect(),
            counters: JournalCounters::default(),
            began: Instant::now(),
            lost_log: LogLimiter::every(LOST_LOG_INTERVAL),
            previous_flushed,
            flush_requested: Notify::new(),
            _lock: lock,
        })
    }

    /// The folder that the journal is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Appends a record; when it returns, the record survives the end of the process. A record that
    /// cannot be written is counted and logged, the request goes on.
    pub fn append(&self, record: &UsageRecord<'_>) {
        let written = LINE.with_borrow_mut(|line| {
            record_line::encode(record, line);
            let writer = &self.writers[SLOT.with(|slot| slot % self.writers.len())];
            lock(writer).append(line, &self.segments)
        });
        match written {
            Ok(false) => {}
            Ok(true) => log::error!(
                "journal: {} is nearly full because the store accepts no usage records",
                self.folder.display()
            ),
            Err(refused) => self.record_lost(&record.id, &refused),
        }
    }

    fn record_lost(&self, id: &str, refused: &AppendError) {
        let lost = self.counters.lost.fetch_add(1, Ordering::Relaxed) + 1;
        if self.lost_log.is_due() {
            let reason: Cow<'_, str> = match refused {
                AppendError::Full => "it has reached journal.limit".into(),
                AppendError::Failed(error) => error.to_string().into(),
            };
            log::error!(
                "journal: cannot write to {}: {reason}; {lost} usage records are lost, the last is {id}",
                self.folder.display(),
            );
        }
    }

    pub fn status(&self) -> JournalStatus {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last_success = Duration::from_millis(count(&self.counters.last_success));
        JournalStatus {
            bytes: self.segments.bytes(),
            limit: self.segments.limit(),
            is_nearly_full: self.segments.is_nearly_full(),
            waiting: self.segments.waiting(),
            flushed: count(&self.counters.flushed),
            lost: count(&self.counters.lost),
            damaged: count(&self.counters.damaged),
            since_success: self.began.elapsed().saturating_sub(last_success),
        }
    }

    /// Tells whether the sink has all records of earlier processes.
    pub fn has_flushed_previous(&self) -> bool {
        self.previous_flushed.initialized()
    }

    /// Waits until the sink has all records of earlier processes.
    pub async fn previous_flushed(&self) {
        self.previous_flushed.wait().await;
    }

    /// Lets the flusher try again at once, without the rest of its pause.
    pub fn flush_now(&self) {
        self.flush_requested.notify_one();
    }

    pub(super) fn record_flushed(&self, lines: u64) {
        if self.segments.count_flushed(lines) == 0 {
            // It may be set already.
            let _ = self.previous_flushed.set(());
        }
    }

    /// Tries once more to flush what is left, within `limit`. What cannot be flushed stays on disk.
    pub async fn finish(&self, limit: Duration) {
        let failures = || self.counters.failures.load(Ordering::Acquire);
        let before = failures();
        self.flush_now();
        let until = Instant::now() + limit;
        while !self.is_empty() && failures() == before && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let left = self.segments.waiting();
        if left > 0 {
            log::warn!("journal: {left} usage records stay on disk until the next start");
        }
    }

    /// Syncs everything written so far to the disk. Blocks.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mut unsynced = self.segments.take_unsynced();
        unsynced.extend(
            self.writers
                .iter()
                .filter_map(|writer| lock(writer).take_unsynced()),
        );
        if unsynced.is_empty() {
            return Ok(());
        }
        for file in unsynced {
            file.sync_data()?;
        }
        File::open(&self.folder)?.sync_all()
    }

    pub(super) fn record_success(&self) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.counters.last_success.store(elapsed, Ordering::Relaxed);
    }

    /// The segment to flush next; where none is closed, the writers close theirs.
    pub(super) fn oldest(&self) -> Option<JournalSegment> {
        self.segments.oldest().or_else(|| {
            self.writers
                .iter()
                .for_each(|writer| lock(writer).close(&self.segments));
            self.segments.oldest()
        })
    }

    fn is_empty(&self) -> bool {
        self.writers.iter().all(|writer| lock(writer).is_idle()) && self.segments.oldest().is_none()
    }
}

fn lock(writer: &Mutex<SegmentWriter>) -> MutexGuard<'_, SegmentWriter> {
    // A poisoned lock is no reason to stop: the length always covers whole lines.
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

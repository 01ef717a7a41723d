//! Receipts on disk until the books have them: no database stands in the way of a request.
//!
//! A receipt is appended with one write before its request's last byte goes out, and carried to
//! the books from there. Each thread appends to a segment of its own; who carries takes it away
//! from the pen, and deletes it when all of it has been carried. What was carried and not yet
//! deleted when the process ended is carried again, and the books know every receipt by its id.

mod carry;
mod line;
mod pen;
mod pile;
mod reading;
mod segment;
mod seldom;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::{self, File, TryLockError};
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{Notify, SetOnce};

pub use carry::{Flusher, run_background};

use pen::{Pen, Refused};
use pile::{Pile, Segment};
use seldom::Seldom;

use crate::model::UsageRecord;

const LOCK: &str = "lock";

/// More threads than so many share pens: each pen is a batch of its own for the books.
const MOST_PENS: usize = 4;

/// Between two lines in the log about receipts that are lost.
const BETWEEN_ALARMS: Duration = Duration::from_secs(10);

/// Where receipts are kept for good.
#[async_trait]
pub trait UsageSink: Send + Sync {
    /// Writes down all of them or none. Those that are there already stay as they are, by their
    /// ids; the answer is how many were not.
    async fn record(&self, receipts: &[UsageRecord<'_>]) -> Result<usize, String>;
}

/// Belongs to one process; its threads share it.
pub struct Journal {
    folder: PathBuf,
    pile: Pile,
    pens: Box<[Mutex<Pen>]>,
    tally: Tally,
    began: Instant,
    lost: Seldom,
    /// Set when the books have all that earlier processes left.
    earlier_carried: SetOnce<()>,
    /// Somebody waits for what is left.
    hurry: Notify,
    /// Locked for as long as the journal is open.
    _lock: File,
}

#[derive(Default)]
struct Tally {
    carried: AtomicU64,
    lost: AtomicU64,
    damaged: AtomicU64,
    /// Attempts that the books refused.
    failures: AtomicU64,
    /// When nothing was left to carry or something was carried, in milliseconds since the beginning.
    last_success: AtomicU64,
}

/// How a journal stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JournalStatus {
    pub bytes: u64,
    pub limit: u64,
    pub is_nearly_full: bool,
    /// Receipts that the books do not have yet.
    pub waiting: u64,
    pub carried: u64,
    /// Receipts that could not be written down.
    pub lost: u64,
    /// Lines that could not be read again.
    pub damaged: u64,
    /// Since everything there was had been carried, or some of it.
    pub since_success: Duration,
}

thread_local! {
    /// A line is put together here, so that one costs no memory of its own.
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Which of the pens a thread takes.
    static HAND: usize = {
        static HANDS: AtomicUsize = AtomicUsize::new(0);
        HANDS.fetch_add(1, Ordering::Relaxed)
    };
}

impl Journal {
    /// Takes possession of a folder, with what is in it from before.
    pub fn open(folder: &Path, limit: u64) -> io::Result<Journal> {
        fs::create_dir_all(folder)?;
        let lock = File::create(folder.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = "another process uses it; give each a folder of its own";
                return Err(io::Error::other(message));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let pile = Pile::open(folder, limit)?;
        let earlier_carried = match pile.earlier() {
            0 => SetOnce::new_with(Some(())),
            count => {
                log::info!("journal: {count} receipts are left from before");
                SetOnce::new()
            }
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let pens = (0..threads.min(MOST_PENS)).map(|_| Mutex::default());
        Ok(Journal {
            folder: folder.to_owned(),
            pile,
            pens: pens.collect(),
            tally: Tally::default(),
            began: Instant::now(),
            lost: Seldom::every(BETWEEN_ALARMS),
            earlier_carried,
            hurry: Notify::new(),
            _lock: lock,
        })
    }

    /// Returns when the receipt survives the end of this process. One that cannot be written is
    /// counted and logged: a request is not refused for it.
    pub fn append(&self, receipt: &UsageRecord<'_>) {
        let written = LINE.with_borrow_mut(|line| {
            line::write(receipt, line);
            let pen = &self.pens[HAND.with(|hand| hand % self.pens.len())];
            hold(pen).write(line, &self.pile)
        });
        match written {
            Ok(false) => {}
            Ok(true) => log::error!(
                "journal: {} is nearly full; the store takes no receipts",
                self.folder.display()
            ),
            Err(refused) => self.lose(&receipt.id, &refused),
        }
    }

    fn lose(&self, id: &str, refused: &Refused) {
        let lost = self.tally.lost.fetch_add(1, Ordering::Relaxed) + 1;
        if self.lost.now() {
            let reason: Cow<'_, str> = match refused {
                Refused::Full => "it has reached its limit".into(),
                Refused::Failed(error) => error.to_string().into(),
            };
            log::error!(
                "journal: cannot write to {}: {reason}; {lost} receipts are lost, the last is {id}",
                self.folder.display(),
            );
        }
    }

    pub fn standing(&self) -> JournalStatus {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last_success = Duration::from_millis(count(&self.tally.last_success));
        JournalStatus {
            bytes: self.pile.bytes(),
            limit: self.pile.limit(),
            is_nearly_full: self.pile.is_nearly_full(),
            waiting: self.pile.waiting(),
            carried: count(&self.tally.carried),
            lost: count(&self.tally.lost),
            damaged: count(&self.tally.damaged),
            since_success: self.began.elapsed().saturating_sub(last_success),
        }
    }

    /// Whether the books have all that earlier processes left here.
    pub fn has_flushed_previous(&self) -> bool {
        self.earlier_carried.initialized()
    }

    /// Returns when they have.
    pub async fn earlier_carried(&self) {
        self.earlier_carried.wait().await;
    }

    /// There is reason to believe that the books are well: no pause is made before the next attempt.
    pub fn hurry(&self) {
        self.hurry.notify_one();
    }

    fn note_carried(&self, lines: u64) {
        if self.pile.carried(lines) == 0 {
            // It may have been so before.
            let _ = self.earlier_carried.set(());
        }
    }

    /// One more attempt to carry what is left, for so long at most. What cannot be stays where it is.
    pub async fn finish(&self, limit: Duration) {
        let failures = || self.tally.failures.load(Ordering::Acquire);
        let before = failures();
        self.hurry();
        let until = Instant::now() + limit;
        while !self.is_empty() && failures() == before && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let left = self.pile.waiting();
        if left > 0 {
            log::warn!("journal: {left} receipts stay there until the next start");
        }
    }

    /// Everything written so far survives a power cut, too. Blocks for as long as the disk takes.
    fn sync(&self) -> io::Result<()> {
        let mut unsynced = self.pile.take_unsynced();
        unsynced.extend(self.pens.iter().filter_map(|pen| hold(pen).take_unsynced()));
        if unsynced.is_empty() {
            return Ok(());
        }
        for file in unsynced {
            file.sync_data()?;
        }
        File::open(&self.folder)?.sync_all()
    }

    fn note_success(&self) {
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tally.last_success.store(elapsed, Ordering::Relaxed);
    }

    /// What is to be carried next: what waits on the pile, else what has been written since.
    fn oldest(&self) -> Option<Segment> {
        self.pile.oldest().or_else(|| {
            self.pens
                .iter()
                .for_each(|pen| hold(pen).signature(&self.pile));
            self.pile.oldest()
        })
    }

    fn is_empty(&self) -> bool {
        self.pens.iter().all(|pen| hold(pen).is_idle()) && self.pile.oldest().is_none()
    }
}

fn hold(pen: &Mutex<Pen>) -> MutexGuard<'_, Pen> {
    // Nothing panics while it is held; if it did, its length is that of whole lines.
    pen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

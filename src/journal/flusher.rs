//! From the journal to the books, in the background and for as long as it takes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::reading::{BATCH, Batch, Passed, Reading};
use super::seldom::Seldom;
use super::{Journal, UsageSink, segment};

/// How long receipts gather before they are carried.
const GATHER: Duration = Duration::from_millis(500);
/// Pauses after failures double up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// UsageSink that do not answer for so long are asked again.
const PATIENCE: Duration = Duration::from_secs(30);
/// After a power cut, what came in this time may be missing.
const SYNC: Duration = Duration::from_secs(1);
/// Between two lines in the log about the same trouble.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(60);

/// Carries, and sees to it that what waits is on the disk, for as long as it is polled.
pub async fn run_background(journal: Arc<Journal>, books: Arc<dyn UsageSink>) {
    let carrier = Flusher::new(journal.clone(), books);
    tokio::join!(carrier.run(), sync(journal));
}

async fn sync(journal: Arc<Journal>) {
    let complaint = Seldom::every(BETWEEN_COMPLAINTS);
    loop {
        sleep(SYNC).await;
        let journal = journal.clone();
        let synced = tokio::task::spawn_blocking(move || journal.sync()).await;
        if let Ok(Err(error)) = synced
            && complaint.now()
        {
            log::error!("journal: cannot be put on the disk: {error}");
        }
    }
}

/// Where the carrying has got to. A journal has one.
pub struct Flusher {
    journal: Arc<Journal>,
    books: Arc<dyn UsageSink>,
    reading: Option<Reading>,
    /// What was read last; kept for its room.
    bytes: Vec<u8>,
    complaint: Seldom,
}

impl Flusher {
    pub fn new(journal: Arc<Journal>, books: Arc<dyn UsageSink>) -> Flusher {
        Flusher {
            journal,
            books,
            reading: None,
            bytes: Vec::new(),
            complaint: Seldom::every(BETWEEN_COMPLAINTS),
        }
    }

    async fn run(mut self) {
        let mut pause = GATHER;
        loop {
            match self.step().await {
                Ok(_) if self.has_more() => {
                    pause = GATHER;
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(_) => pause = GATHER,
                Err(reason) => {
                    self.journal.tally.failures.fetch_add(1, Ordering::Release);
                    if self.complaint.now() {
                        log::error!("journal: the store takes no receipts, they wait: {reason}");
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.journal.hurry.notified() => {}
            }
        }
    }

    /// Whether there is something that has gathered for long enough, or is enough.
    fn has_more(&self) -> bool {
        let pile = &self.journal.pile;
        pile.oldest().is_some() || pile.waiting() >= BATCH as u64
    }

    /// Carries one batch, if there is something to carry; how many lines it was.
    pub async fn step(&mut self) -> Result<u64, String> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let offset = self.next(&mut bytes).map_err(|error| error.to_string())?;
        let Some(offset) = offset else {
            self.journal.note_success();
            return Ok(0);
        };
        let Batch { receipts, passed } = Batch::of(&bytes, offset);
        if !receipts.is_empty() {
            let recording = self.books.record(&receipts);
            let recorded = timeout(PATIENCE, recording).await;
            recorded.map_err(|_| format!("no answer in {PATIENCE:?}"))??;
        }
        let tally = &self.journal.tally;
        let (carried, damaged) = (receipts.len(), passed.damaged.len());
        tally.carried.fetch_add(carried as u64, Ordering::Relaxed);
        tally.damaged.fetch_add(damaged as u64, Ordering::Relaxed);
        self.pass(&passed);
        self.journal.note_success();
        self.bytes = bytes;
        Ok(passed.lines)
    }

    /// Reads whole lines, and says where in their segment they begin.
    fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<u64>> {
        loop {
            let reading = match self.reading.take() {
                Some(reading) => reading,
                None => match self.journal.oldest() {
                    Some(oldest) => Reading::begin(&self.journal.folder, oldest)?,
                    None => return Ok(None),
                },
            };
            let reading = self.reading.insert(reading);
            if reading.fill(bytes)? {
                return Ok(Some(reading.offset));
            }
            let rest = reading.rest();
            self.pass(&rest);
        }
    }

    /// These lines are done with, and so is their segment if they were its last.
    fn pass(&mut self, passed: &Passed) {
        let Some(reading) = &mut self.reading else {
            return;
        };
        let path = segment::path(&self.journal.folder, reading.segment.number);
        let path = path.display();
        for at in &passed.damaged {
            log::error!(
                "journal: the line at byte {at} of {path} is damaged and counts for nothing; \
                 the file is set aside when the rest of it is carried"
            );
        }
        if passed.is_torn {
            let at = reading.offset;
            log::warn!("journal: {path} ends at byte {at} with half a line, which is left out");
        }
        reading.pass(passed);
        self.journal.note_carried(passed.lines);
        if reading.is_at_end() {
            self.journal.pile.retire(reading.is_damaged);
            self.reading = None;
        }
    }
}

//! Moves usage records from the journal to the sink in the background, with retries.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::log_limiter::LogLimiter;
use super::segment_file;
use super::segment_reader::{BATCH, FlushedLines, RecordBatch, SegmentReader};
use super::usage_journal::{Journal, UsageSink};

/// Time that records gather before they are flushed.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);
/// The pause after a failure doubles up to this.
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// A sink that does not answer for so long counts as failed; the batch is sent again.
const RECORD_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of `fsync`: a power cut loses at most the records of this time.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two log lines about the same failure.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Flushes the journal to the sink, and syncs it to the disk, for as long as the future is polled.
pub async fn run_background(journal: Arc<Journal>, sink: Arc<dyn UsageSink>) {
    let flusher = Flusher::new(journal.clone(), sink);
    tokio::join!(flusher.run(), sync(journal));
}

async fn sync(journal: Arc<Journal>) {
    let limiter = LogLimiter::every(LOG_INTERVAL);
    loop {
        sleep(SYNC_INTERVAL).await;
        let journal = journal.clone();
        let synced = tokio::task::spawn_blocking(move || journal.sync()).await;
        if let Ok(Err(error)) = synced
            && limiter.is_due()
        {
            log::error!("journal: fsync failed: {error}");
        }
    }
}

/// Reads the journal and records its lines in the sink. A journal has exactly one.
pub struct Flusher {
    journal: Arc<Journal>,
    sink: Arc<dyn UsageSink>,
    reader: Option<SegmentReader>,
    /// The bytes that were read last; the buffer is reused.
    bytes: Vec<u8>,
    limiter: LogLimiter,
}

impl Flusher {
    pub fn new(journal: Arc<Journal>, sink: Arc<dyn UsageSink>) -> Flusher {
        Flusher {
            journal,
            sink,
            reader: None,
            bytes: Vec::new(),
            limiter: LogLimiter::every(LOG_INTERVAL),
        }
    }

    async fn run(mut self) {
        let mut backoff = FLUSH_INTERVAL;
        loop {
            match self.step().await {
                Ok(_) if self.has_more() => {
                    backoff = FLUSH_INTERVAL;
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(_) => backoff = FLUSH_INTERVAL,
                Err(reason) => {
                    self.journal
                        .counters
                        .failures
                        .fetch_add(1, Ordering::Release);
                    if self.limiter.is_due() {
                        log::error!(
                            "journal: the store accepts no usage records, they stay in the journal: {reason}"
                        );
                    }
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
            tokio::select! {
                () = sleep(backoff) => {}
                () = self.journal.flush_requested.notified() => {}
            }
        }
    }

    /// Tells whether a closed segment, or a whole batch, is there to be flushed at once.
    fn has_more(&self) -> bool {
        let segments = &self.journal.segments;
        segments.oldest().is_some() || segments.waiting() >= BATCH as u64
    }

    /// Flushes one batch, if there is one, and returns how many lines it had.
    pub async fn step(&mut self) -> Result<u64, String> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let offset = self.next(&mut bytes).map_err(|error| error.to_string())?;
        let Some(offset) = offset else {
            self.journal.record_success();
            return Ok(0);
        };
        let RecordBatch { records, flushed } = RecordBatch::decode(&bytes, offset);
        if !records.is_empty() {
            let recording = self.sink.record(&records);
            let recorded = timeout(RECORD_TIMEOUT, recording).await;
            recorded.map_err(|_| format!("no answer in {RECORD_TIMEOUT:?}"))??;
        }
        let counters = &self.journal.counters;
        let (recorded, damaged) = (records.len(), flushed.damaged.len());
        counters
            .flushed
            .fetch_add(recorded as u64, Ordering::Relaxed);
        counters
            .damaged
            .fetch_add(damaged as u64, Ordering::Relaxed);
        self.advance(&flushed);
        self.journal.record_success();
        self.bytes = bytes;
        Ok(flushed.lines)
    }

    /// Reads the next whole lines, and returns the offset in their segment where they begin.
    fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<u64>> {
        loop {
            let reader = match self.reader.take() {
                Some(reader) => reader,
                None => match self.journal.oldest() {
                    Some(oldest) => SegmentReader::open(&self.journal.folder, oldest)?,
                    None => return Ok(None),
                },
            };
            let reader = self.reader.insert(reader);
            if reader.fill(bytes)? {
                return Ok(Some(reader.offset));
            }
            let rest = reader.rest();
            self.advance(&rest);
        }
    }

    /// Moves past lines that are flushed, and deletes their segment if they were its last.
    fn advance(&mut self, flushed: &FlushedLines) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        let path = segment_file::path(&self.journal.folder, reader.segment.number);
        let path = path.display();
        for at in &flushed.damaged {
            log::error!(
                "journal: the line at byte {at} of {path} is damaged and is skipped; \
                 the file is kept as *.receipts.damaged when the rest of it is flushed"
            );
        }
        if flushed.is_incomplete {
            let at = reader.offset;
            log::warn!(
                "journal: {path} ends at byte {at} with an incomplete line, which is skipped"
            );
        }
        reader.advance(flushed);
        self.journal.record_flushed(flushed.lines);
        if reader.is_at_end() {
            self.journal.segments.remove_oldest(reader.is_damaged);
            self.reader = None;
        }
    }
}

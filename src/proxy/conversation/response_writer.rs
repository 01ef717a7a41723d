//! Writes stored responses to the database, behind the requests that they are of.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::response_queue::{JobQueue, QueueShares, QueuedJob, StoreJob};
use crate::config;
use crate::journal::LogLimiter;
use crate::runtime::IdOrigin;
use crate::store::{MARK_BATCH, Store, StoreError, StoredResponse, mark_bytes};

/// How often a line of the log that any request may cause is written.
pub(in crate::proxy) const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// How often expired responses are deleted.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// A key that holds as much as it may gets room for this part of it, so that not every response deletes some.
const TRIMMED_PART: usize = 8;

/// What the writer is asked.
pub(in crate::proxy) enum WriterMessage {
    Queue(QueuedJob),
    /// All that was queued before is to be written.
    Flush(oneshot::Sender<()>),
}

pub(in crate::proxy) struct ResponseWriter {
    store: Store,
    settings: config::ConversationsConfig,
    shares: Arc<QueueShares>,
    /// How many bytes keys have in the store, as last counted and without what others delete or write since.
    held: HashMap<String, usize>,
    /// In a row.
    lost: u64,
    too_large_log: LogLimiter,
}

impl ResponseWriter {
    pub(in crate::proxy) fn new(
        store: Store,
        settings: config::ConversationsConfig,
        shares: Arc<QueueShares>,
    ) -> ResponseWriter {
        ResponseWriter {
            store,
            settings,
            shares,
            held: HashMap::new(),
            lost: 0,
            too_large_log: LogLimiter::every(LOG_INTERVAL),
        }
    }

    pub(in crate::proxy) async fn run(mut self, mut messages: mpsc::Receiver<WriterMessage>) {
        let mut next_expiry = Instant::now();
        let mut queue = JobQueue::default();
        // Who waits for all that is queued.
        let mut flushed: Vec<oneshot::Sender<()>> = Vec::new();
        loop {
            while let Ok(message) = messages.try_recv() {
                sort_in(message, &mut queue, &mut flushed);
            }
            if Instant::now() >= next_expiry {
                self.expire().await;
                next_expiry = Instant::now() + EXPIRY_INTERVAL;
            }
            if let Some(job) = queue.pop() {
                self.run_job(job).await;
                continue;
            }
            for done in flushed.drain(..) {
                // Who asked may have stopped waiting.
                let _ = done.send(());
            }
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => sort_in(message, &mut queue, &mut flushed),
                    None => return,
                },
                () = sleep_until(next_expiry) => {}
            }
        }
    }

    async fn expire(&mut self) {
        // A store that is away has its turn in a minute.
        let _ = self.store.delete_expired_responses().await;
        self.held.clear();
    }

    async fn run_job(&mut self, QueuedJob { owner, job }: QueuedJob) {
        let size = job.size();
        match job {
            StoreJob::Store { id, reply } => {
                let stored = self.insert(&owner, &id, reply).await;
                self.report(stored);
            }
            StoreJob::Mark { ids, origin } => {
                let stored = self.insert_marks(&owner, &ids, origin).await;
                self.report(stored);
            }
            StoreJob::Delete { id, done } => {
                let _ = done.send(self.store.delete_response(&owner, &id).await.is_ok());
            }
        }
        self.shares.remove(&owner, size);
    }

    async fn insert_marks(
        &mut self,
        owner: &str,
        ids: &[String],
        origin: IdOrigin,
    ) -> Result<(), StoreError> {
        for ids in ids.chunks(MARK_BATCH) {
            let size = mark_bytes(ids.len());
            if !self.has_room(owner, size).await? {
                return Ok(());
            }
            let expires = self.expires();
            let origin = origin.as_bytes();
            self.store.insert_marks(owner, ids, origin, expires).await?;
            *self.held.entry(owner.to_owned()).or_default() += size;
        }
        Ok(())
    }

    async fn insert(
        &mut self,
        owner: &str,
        id: &str,
        reply: StoredResponse,
    ) -> Result<(), StoreError> {
        let size = reply.bytes();
        if !self.has_room(owner, size).await? {
            return Ok(());
        }
        let expires = self.expires();
        self.store
            .insert_response(owner, id, reply, expires)
            .await?;
        *self.held.entry(owner.to_owned()).or_default() += size;
        Ok(())
    }

    /// When what is written now expires, in milliseconds.
    fn expires(&self) -> i64 {
        let ttl = i64::try_from(self.settings.ttl.as_millis()).unwrap_or(i64::MAX);
        Timestamp::now().as_millisecond().saturating_add(ttl)
    }

    /// Makes room for so many bytes of a key; `false`: they are more than it may hold.
    async fn has_room(&mut self, owner: &str, size: usize) -> Result<bool, StoreError> {
        if size > self.settings.max_bytes_per_key {
            if self.too_large_log.is_due() {
                log::warn!(
                    "store: a response of {size} bytes is over server.conversations.max_bytes_per_key, and will not \
                     outlive the process"
                );
            }
            return Ok(false);
        }
        self.make_room(owner, size).await?;
        Ok(true)
    }

    /// Deletes the oldest responses of a key if it would hold too much with one more.
    async fn make_room(&mut self, owner: &str, size: usize) -> Result<(), StoreError> {
        let limit = self.settings.max_bytes_per_key;
        let held = match self.held.get(owner) {
            Some(held) => *held,
            None => self.count(owner).await?,
        };
        if held.saturating_add(size) > limit {
            let left = (limit - size).saturating_sub(limit / TRIMMED_PART);
            self.store.trim_responses(owner, left as u64).await?;
            self.count(owner).await?;
        }
        Ok(())
    }

    /// Counts how many bytes a key has in the store.
    async fn count(&mut self, owner: &str) -> Result<usize, StoreError> {
        let held = self.store.response_bytes(owner).await?;
        let held = usize::try_from(held).unwrap_or(usize::MAX);
        self.held.insert(owner.to_owned(), held);
        Ok(held)
    }

    /// Logs an outage of the store once, not with every response.
    fn report(&mut self, stored: Result<(), StoreError>) {
        match stored {
            Ok(()) if self.lost > 0 => {
                let lost = self.lost;
                log::warn!(
                    "store: {lost} responses were not stored, and will not outlive the process"
                );
                self.lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if self.lost == 0 {
                    log::warn!("store: responses cannot be stored: {error}");
                }
                self.lost += 1;
            }
        }
    }
}

/// Queues a job, or notes who waits for all that is queued.
fn sort_in(message: WriterMessage, queue: &mut JobQueue, flushed: &mut Vec<oneshot::Sender<()>>) {
    match message {
        WriterMessage::Queue(job) => queue.push(job),
        WriterMessage::Flush(done) => flushed.push(done),
    }
}

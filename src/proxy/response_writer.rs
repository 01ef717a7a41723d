//! Writes stored responses to the database, behind the requests that they are of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use crate::config;
use crate::store::{Store, StoreError, StoredResponse};

/// How many bytes may be queued for writing, of all keys and of one; beyond that they are only in memory.
const QUEUE_BYTES: usize = 64 << 20;
const QUEUE_BYTES_PER_KEY: usize = QUEUE_BYTES / 2;

/// How often expired responses are deleted.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// A key that holds as much as it may gets room for this part of it, so that not every response deletes some.
const TRIMMED_PART: usize = 8;

/// The bytes that are queued for writing.
#[derive(Default)]
pub(super) struct QueuedBytes(Mutex<HashMap<String, usize>>);

impl QueuedBytes {
    /// Adds a response of a key, unless that would be too much.
    pub(super) fn add(&self, owner: &str, size: usize) -> bool {
        let mut by_key = self.by_key();
        let all: usize = by_key.values().sum();
        let of_key = by_key.get(owner).copied().unwrap_or_default();
        if all + size > QUEUE_BYTES || of_key + size > QUEUE_BYTES_PER_KEY {
            return false;
        }
        by_key.insert(owner.to_owned(), of_key + size);
        true
    }

    pub(super) fn remove(&self, owner: &str, size: usize) {
        let mut by_key = self.by_key();
        if let Some(of_key) = by_key.get_mut(owner) {
            *of_key = of_key.saturating_sub(size);
            if *of_key == 0 {
                by_key.remove(owner);
            }
        }
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the writer does, in order.
pub(super) enum StoreJob {
    Store {
        owner: String,
        id: String,
        reply: StoredResponse,
    },
    /// In turn with the others, so that nothing is written after it was deleted.
    Delete {
        owner: String,
        id: String,
        done: oneshot::Sender<bool>,
    },
    Flush(oneshot::Sender<()>),
}

pub(super) struct ResponseWriter {
    store: Store,
    settings: config::ConversationsConfig,
    queued: Arc<QueuedBytes>,
    /// How many bytes keys have in the store, as last counted and without what others delete or write since.
    held: HashMap<String, usize>,
    /// In a row.
    lost: u64,
}

impl ResponseWriter {
    pub(super) fn new(
        store: Store,
        settings: config::ConversationsConfig,
        queued: Arc<QueuedBytes>,
    ) -> ResponseWriter {
        ResponseWriter {
            store,
            settings,
            queued,
            held: HashMap::new(),
            lost: 0,
        }
    }

    pub(super) async fn run(mut self, mut queued: mpsc::Receiver<StoreJob>) {
        let mut expiry = interval(EXPIRY_INTERVAL);
        expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                job = queued.recv() => match job {
                    Some(job) => self.run_job(job).await,
                    None => return,
                },
                _ = expiry.tick() => {
                    // A store that is away has its turn in a minute.
                    let _ = self.store.delete_expired_responses().await;
                    self.held.clear();
                }
            }
        }
    }

    async fn run_job(&mut self, job: StoreJob) {
        match job {
            StoreJob::Store { owner, id, reply } => {
                let size = reply.bytes();
                let stored = self.insert(&owner, &id, reply).await;
                self.queued.remove(&owner, size);
                self.report(stored);
            }
            // Who asked may have stopped waiting.
            StoreJob::Delete { owner, id, done } => {
                let _ = done.send(self.store.delete_response(&owner, &id).await.is_ok());
            }
            StoreJob::Flush(done) => {
                let _ = done.send(());
            }
        }
    }

    async fn insert(
        &mut self,
        owner: &str,
        id: &str,
        reply: StoredResponse,
    ) -> Result<(), StoreError> {
        let size = reply.bytes();
        let limit = self.settings.max_bytes_per_key;
        if size > limit {
            log::warn!(
                "store: a response of {size} bytes is over server.conversations.max_bytes_per_key, and will not \
                 outlive the process"
            );
            return Ok(());
        }
        self.make_room(owner, size).await?;
        let ttl = i64::try_from(self.settings.ttl.as_millis()).unwrap_or(i64::MAX);
        let expires = Timestamp::now().as_millisecond().saturating_add(ttl);
        self.store
            .insert_response(owner, id, reply, expires)
            .await?;
        *self.held.entry(owner.to_owned()).or_default() += size;
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leaves_half_of_the_queue_to_others() {
        let queued = QueuedBytes::default();
        assert!(queued.add("a", QUEUE_BYTES_PER_KEY));
        assert!(!queued.add("a", 1));
        assert!(queued.add("b", QUEUE_BYTES_PER_KEY - 1));
        assert!(!queued.add("c", 2));
        queued.remove("a", QUEUE_BYTES_PER_KEY);
        assert!(queued.add("c", 2) && queued.by_key().len() == 2);
    }
}

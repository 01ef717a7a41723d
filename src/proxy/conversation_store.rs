//! Stored responses in the database: written behind the requests, read again when memory has lost them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::formats::{ConversationCodec, ConversationItems};
use crate::model::{ApiError, ApiErrorKind, Format};
use crate::runtime::{Conversations, StoredConversationTurn};
use crate::store::{Store, StoreError, StoredResponse};

/// How many responses may be queued for writing, and how many bytes; beyond that they are only in memory.
const QUEUE_LENGTH: usize = 4096;
const QUEUE_BYTES: usize = 64 << 20;

/// How long writing all that is queued may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// How often expired responses are deleted.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// What a response counts beside its content, when a conversation is measured.
const OVERHEAD: usize = 256;

/// Whose conversations are meant, in which format, and how long they may be.
#[derive(Clone, Copy)]
pub(super) struct ConversationScope<'a> {
    pub(super) owner: &'a str,
    pub(super) format: Format,
    pub(super) limit: usize,
}

impl ConversationScope<'_> {
    pub(super) fn codec(&self) -> Option<&'static dyn ConversationCodec> {
        self.format.codec().conversation_codec()
    }
}

/// Writes stored responses to the database and restores them into memory.
pub struct ConversationStore {
    store: Store,
    jobs: mpsc::Sender<StoreJob>,
    /// How many bytes of content are queued.
    bytes: Arc<AtomicUsize>,
}

/// What the writer does, in order.
enum StoreJob {
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

impl ConversationStore {
    /// The store, and the task that writes, for its caller to run.
    pub fn new(
        store: Store,
        ttl: Duration,
    ) -> (ConversationStore, impl Future<Output = ()> + Send + 'static) {
        let (jobs, queued) = mpsc::channel(QUEUE_LENGTH);
        let bytes = Arc::<AtomicUsize>::default();
        let writer = ResponseWriter {
            store: store.clone(),
            ttl,
            bytes: bytes.clone(),
            lost: 0,
        };
        let conversation_store = ConversationStore { store, jobs, bytes };
        (conversation_store, writer.run(queued))
    }

    /// Queues a response to be written.
    pub(super) fn store(
        &self,
        owner: &str,
        id: &str,
        turn: &StoredConversationTurn,
        codec: &dyn ConversationCodec,
    ) {
        let [input, _] = turn.items(codec);
        let reply = StoredResponse {
            previous: turn.previous.clone(),
            input: input.text.to_vec(),
            input_items: input.count as u64,
            reply: turn.response.to_vec(),
        };
        let size = size_of_response(&reply);
        if self.bytes.fetch_add(size, Ordering::AcqRel) + size > QUEUE_BYTES {
            self.bytes.fetch_sub(size, Ordering::AcqRel);
            log::warn!("store: too many responses are queued, one will not outlive the process");
            return;
        }
        let job = StoreJob::Store {
            owner: owner.to_owned(),
            id: id.to_owned(),
            reply,
        };
        if self.jobs.try_send(job).is_err() {
            self.bytes.fetch_sub(size, Ordering::AcqRel);
            log::warn!("store: too many responses are queued, one will not outlive the process");
        }
    }

    /// Restores a response and all that led to it into memory. `false`: nothing was restored.
    pub(super) async fn restore(
        &self,
        conversations: &Conversations,
        scope: ConversationScope<'_>,
        id: &str,
    ) -> bool {
        let (mut next, mut size, mut restored) = (Some(id.to_owned()), 0, false);
        while let Some(id) = next {
            // Longer ones are refused anyway.
            if size > scope.limit {
                break;
            }
            size += OVERHEAD;
            if let Some(known) = conversations.turn(scope.owner, &id) {
                next = known.previous.clone();
                continue;
            }
            let Some(turn) = self.restore_one(conversations, scope, &id).await else {
                break;
            };
            size += turn.size();
            next = turn.previous.clone();
            restored = true;
        }
        restored
    }

    /// Restores one response into memory, and returns it.
    pub(super) async fn restore_one(
        &self,
        conversations: &Conversations,
        scope: ConversationScope<'_>,
        id: &str,
    ) -> Option<StoredConversationTurn> {
        let owner = scope.owner;
        // A store that is away knows as little as one without it.
        let found = self.store.query(self.store.response(owner, id)).await;
        let turn = stored_turn(scope.format, found.ok()??)?;
        conversations.insert(owner, id, &turn);
        Some(turn)
    }

    /// Deletes a response, after all that was queued before.
    pub(super) async fn delete(&self, owner: &str, id: &str) -> Result<(), ApiError> {
        let (done, deleted) = oneshot::channel();
        let job = StoreJob::Delete {
            owner: owner.to_owned(),
            id: id.to_owned(),
            done,
        };
        let deleted = timeout(FLUSH_TIMEOUT, async {
            self.jobs.send(job).await.is_ok() && deleted.await.unwrap_or(false)
        });
        if deleted.await.unwrap_or(false) {
            return Ok(());
        }
        let message = "the response cannot be deleted now; try again";
        Err(ApiError::new(ApiErrorKind::Overloaded, message))
    }

    /// Returns when all that is queued has been written, or when that takes too long.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        let flushed = timeout(FLUSH_TIMEOUT, async {
            self.jobs.send(StoreJob::Flush(done)).await.is_ok() && written.await.is_ok()
        });
        if !flushed.await.unwrap_or(false) {
            log::warn!("store: not every stored response could be written");
        }
    }
}

fn size_of_response(reply: &StoredResponse) -> usize {
    reply.input.len() + reply.reply.len()
}

/// A turn as memory holds it: its output is a part of the response.
fn stored_turn(format: Format, found: StoredResponse) -> Option<StoredConversationTurn> {
    let codec = format.codec().conversation_codec()?;
    if found.reply.is_empty() {
        return Some(StoredConversationTurn::kept_upstream());
    }
    let input = ConversationItems {
        text: found.input.into(),
        count: usize::try_from(found.input_items).unwrap_or(usize::MAX),
    };
    StoredConversationTurn::from_items(found.previous, &input, found.reply.into(), codec)
}

struct ResponseWriter {
    store: Store,
    ttl: Duration,
    bytes: Arc<AtomicUsize>,
    /// In a row.
    lost: u64,
}

impl ResponseWriter {
    async fn run(mut self, mut queued: mpsc::Receiver<StoreJob>) {
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
                }
            }
        }
    }

    async fn run_job(&mut self, job: StoreJob) {
        match job {
            StoreJob::Store { owner, id, reply } => {
                let size = size_of_response(&reply);
                let ttl = i64::try_from(self.ttl.as_millis()).unwrap_or(i64::MAX);
                let expires = Timestamp::now().as_millisecond().saturating_add(ttl);
                let stored = self
                    .store
                    .insert_response(&owner, &id, reply, expires)
                    .await;
                self.bytes.fetch_sub(size, Ordering::AcqRel);
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

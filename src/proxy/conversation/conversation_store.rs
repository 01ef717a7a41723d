//! Stored responses in the database: written behind the requests, read again when memory has lost them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::response_queue::{QUEUE_LENGTH, QueueShares, QueuedJob, StoreJob};
use super::response_writer::{LOG_INTERVAL, ResponseWriter, WriterMessage};
use crate::config;
use crate::formats::{ConversationCodec, ConversationItems};
use crate::journal::LogLimiter;
use crate::model::{ApiError, ApiErrorKind, Format};
use crate::runtime::{Conversations, IdOrigin, StoredConversationTurn};
use crate::store::{Store, StoreError, StoredResponse};

/// How long writing all that is queued may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// How many responses one query restores, and how many queries restore one conversation.
const BATCH: usize = 256;
const MAX_QUERIES: usize = 8;

/// What a response counts beside its content, when a conversation is measured.
const OVERHEAD: usize = 256;

/// Whose conversations are meant, in which format, and how long they may be.
#[derive(Clone, Copy)]
pub(in crate::proxy) struct ConversationScope<'a> {
    pub(in crate::proxy) owner: &'a str,
    pub(in crate::proxy) format: Format,
    pub(in crate::proxy) limit: usize,
    /// The request has a place to work on large bodies.
    pub(in crate::proxy) has_place: bool,
}

impl ConversationScope<'_> {
    pub(in crate::proxy) fn codec(&self) -> Option<&'static dyn ConversationCodec> {
        self.format.codec().conversation_codec()
    }

    /// The error for a conversation that is longer than it may be.
    pub(in crate::proxy) fn too_long(&self) -> ApiError {
        let limit = self.limit;
        let message = format!("the whole conversation is longer than {limit} bytes");
        ApiError::new(ApiErrorKind::TooLarge, message)
    }
}

/// Writes stored responses to the database and restores them into memory.
pub struct ConversationStore {
    store: Store,
    messages: mpsc::Sender<WriterMessage>,
    shares: Arc<QueueShares>,
    /// How many responses found no place in the queue.
    lost: AtomicU64,
    lost_log: LogLimiter,
}

impl ConversationStore {
    /// The store, and the task that writes, for its caller to run.
    pub fn new(
        store: Store,
        settings: config::ConversationsConfig,
    ) -> (ConversationStore, impl Future<Output = ()> + Send + 'static) {
        let (messages, received) = mpsc::channel(QUEUE_LENGTH);
        let shares = Arc::<QueueShares>::default();
        let writer = ResponseWriter::new(store.clone(), settings, shares.clone());
        let conversation_store = ConversationStore {
            store,
            messages,
            shares,
            lost: AtomicU64::default(),
            lost_log: LogLimiter::every(LOG_INTERVAL),
        };
        (conversation_store, writer.run(received))
    }

    /// Queues a response to be written.
    pub(in crate::proxy) fn store(
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
        let id = id.to_owned();
        if !self.try_queue(owner, StoreJob::Store { id, reply }) {
            self.note_lost();
        }
    }

    /// Queues marks that a key was given these ids, which its upstream keeps.
    pub(in crate::proxy) fn store_marks<'a>(
        &self,
        owner: &str,
        ids: impl Iterator<Item = &'a str>,
        origin: IdOrigin,
    ) {
        let ids: BTreeSet<&str> = ids.collect();
        let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        if !ids.is_empty() && !self.try_queue(owner, StoreJob::Mark { ids, origin }) {
            self.note_lost();
        }
    }

    /// Queues a job; `false`: there is no room.
    fn try_queue(&self, owner: &str, job: StoreJob) -> bool {
        let size = job.size();
        if !self.shares.add(owner, size) {
            return false;
        }
        let job = QueuedJob {
            owner: owner.to_owned(),
            job,
        };
        let is_sent = self.messages.try_send(WriterMessage::Queue(job)).is_ok();
        if !is_sent {
            self.shares.remove(owner, size);
        }
        is_sent
    }

    fn note_lost(&self) {
        let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
        if self.lost_log.is_due() {
            log::warn!(
                "store: too many responses are queued; {lost} so far will not outlive the process"
            );
        }
    }

    /// Restores a response and all that led to it into memory. `false`: nothing was restored.
    pub(in crate::proxy) async fn restore(
        &self,
        conversations: &Conversations,
        scope: ConversationScope<'_>,
        id: &str,
    ) -> bool {
        let (mut next, mut size, mut restored) = (Some(id.to_owned()), 0, false);
        let mut queries = 0;
        while let Some(id) = next {
            // Longer ones are refused anyway.
            if size > scope.limit {
                break;
            }
            size += OVERHEAD;
            // Other requests of this thread go on during a long conversation.
            tokio::task::coop::consume_budget().await;
            if let Some(known) = conversations.turn(scope.owner, &id) {
                next = known.previous.clone();
                continue;
            }
            // Mostly all of it is in the store; a response that is still to be written is in memory.
            queries += 1;
            let is_found = queries <= MAX_QUERIES && {
                let thread = self.store.thread(scope.owner, &id, scope.limit);
                self.insert(conversations, scope, thread).await
            };
            if !is_found || conversations.turn(scope.owner, &id).is_none() {
                break;
            }
            restored = true;
            next = Some(id);
        }
        restored
    }

    /// Restores the responses with these ids into memory. `false`: nothing was restored.
    pub(in crate::proxy) async fn restore_all(
        &self,
        conversations: &Conversations,
        scope: ConversationScope<'_>,
        ids: &[String],
    ) -> bool {
        let mut restored = false;
        for ids in ids.chunks(BATCH) {
            let found = self.store.responses(scope.owner, ids, scope.limit);
            restored |= self.insert(conversations, scope, found).await;
        }
        restored
    }

    /// Puts what a query finds into memory. `false`: it has found nothing. A store that is away knows as little as one
    /// without it.
    async fn insert(
        &self,
        conversations: &Conversations,
        scope: ConversationScope<'_>,
        query: impl Future<Output = Result<Vec<(String, StoredResponse)>, StoreError>>,
    ) -> bool {
        let found = self
            .store
            .query(scope.owner, query)
            .await
            .unwrap_or_default();
        let mut is_found = false;
        for (id, response) in found {
            if let Some(turn) = stored_turn(scope.format, response) {
                conversations.insert(scope.owner, &id, &turn);
                is_found = true;
            }
        }
        is_found
    }

    /// Deletes a response, after all that was queued before.
    pub(in crate::proxy) async fn delete(&self, owner: &str, id: &str) -> Result<(), ApiError> {
        let (done, deleted) = oneshot::channel();
        let id = id.to_owned();
        if self.try_queue(owner, StoreJob::Delete { id, done }) {
            let deleted = timeout(FLUSH_TIMEOUT, deleted).await;
            if matches!(deleted, Ok(Ok(true))) {
                return Ok(());
            }
        }
        let message = "the response cannot be deleted now; try again";
        Err(ApiError::new(ApiErrorKind::Overloaded, message))
    }

    /// Returns when all that is queued has been written, or when that takes too long.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        let flushed = timeout(FLUSH_TIMEOUT, async {
            self.messages.send(WriterMessage::Flush(done)).await.is_ok() && written.await.is_ok()
        });
        if !flushed.await.unwrap_or(false) {
            log::warn!("store: not every stored response could be written");
        }
    }
}

/// A turn as memory holds it: its output is a part of the response.
fn stored_turn(format: Format, found: StoredResponse) -> Option<StoredConversationTurn> {
    if found.reply.is_empty() {
        return Some(StoredConversationTurn::kept_upstream(found.input.into()));
    }
    let codec = format.codec().conversation_codec()?;
    let input = ConversationItems {
        text: found.input.into(),
        count: usize::try_from(found.input_items).unwrap_or(usize::MAX),
    };
    StoredConversationTurn::from_items(found.previous, &input, found.reply.into(), codec)
}

//! Kept replies in the store: written behind the requests, read again when memory has lost them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::formats::{ConversationCodec, Items};
use crate::model::{ApiError, ApiErrorKind, Format};
use crate::runtime::{Conversations, StoredConversationTurn};
use crate::store::{Store, StoreError, StoredResponse};

/// What may wait to be written; beyond that replies are only in memory.
const WAITING: usize = 4096;
const WAITING_BYTES: usize = 64 << 20;

/// How long it may take until all that waits has been written.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between two looks for what has expired.
const SWEEP: Duration = Duration::from_secs(60);

/// What a reply counts beside its content, when a conversation is measured.
const OVERHEAD: usize = 256;

pub struct Archive {
    store: Store,
    work: mpsc::Sender<Work>,
    /// How much of what waits is content.
    bytes: Arc<AtomicUsize>,
}

enum Work {
    Keep {
        owner: String,
        id: String,
        reply: StoredResponse,
    },
    /// In turn with the others, so that nothing is written after it was deleted.
    Forget {
        owner: String,
        id: String,
        done: oneshot::Sender<bool>,
    },
    Flush(oneshot::Sender<()>),
}

impl Archive {
    /// And the task that writes, for whoever runs it.
    pub fn new(
        store: Store,
        ttl: Duration,
    ) -> (Archive, impl Future<Output = ()> + Send + 'static) {
        let (work, waiting) = mpsc::channel(WAITING);
        let bytes = Arc::<AtomicUsize>::default();
        let writer = Writer {
            store: store.clone(),
            ttl,
            bytes: bytes.clone(),
            lost: 0,
        };
        let archive = Archive { store, work, bytes };
        (archive, writer.run(waiting))
    }

    pub(super) fn keep(
        &self,
        owner: &str,
        id: &str,
        kept: &StoredConversationTurn,
        keeper: &dyn ConversationCodec,
    ) {
        let [input, _] = kept.items(keeper);
        let reply = StoredResponse {
            previous: kept.previous.clone(),
            input: input.text.to_vec(),
            input_items: input.count as u64,
            reply: kept.reply.to_vec(),
        };
        let size = size_of_reply(&reply);
        if self.bytes.fetch_add(size, Ordering::AcqRel) + size > WAITING_BYTES {
            self.bytes.fetch_sub(size, Ordering::AcqRel);
            log::warn!("store: too many replies wait to be kept, one will not outlive the process");
            return;
        }
        let work = Work::Keep {
            owner: owner.to_owned(),
            id: id.to_owned(),
            reply,
        };
        if self.work.try_send(work).is_err() {
            self.bytes.fetch_sub(size, Ordering::AcqRel);
            log::warn!("store: too many replies wait to be kept, one will not outlive the process");
        }
    }

    /// Brings a reply and all that led to it into memory. `false`: nothing was brought.
    pub(super) async fn bring_back(
        &self,
        conversations: &Conversations,
        format: Format,
        owner: &str,
        id: &str,
        limit: usize,
    ) -> bool {
        let (mut next, mut size, mut brought) = (Some(id.to_owned()), 0, false);
        while let Some(id) = next {
            // Longer ones are refused anyway.
            if size > limit {
                break;
            }
            size += OVERHEAD;
            if let Some(known) = conversations.turn(owner, &id) {
                next = known.previous.clone();
                continue;
            }
            let asked = self.store.query(self.store.response(owner, &id)).await;
            // A store that is away knows as little as one without it.
            let Ok(Some(found)) = asked else {
                break;
            };
            size += size_of_reply(&found);
            let Some(kept) = kept(format, found) else {
                break;
            };
            next = kept.previous.clone();
            conversations.insert(owner, &id, &kept);
            brought = true;
        }
        brought
    }

    pub(super) async fn forget(&self, owner: &str, id: &str) -> Result<(), ApiError> {
        let (done, deleted) = oneshot::channel();
        let work = Work::Forget {
            owner: owner.to_owned(),
            id: id.to_owned(),
            done,
        };
        let deleted = timeout(PATIENCE, async {
            self.work.send(work).await.is_ok() && deleted.await.unwrap_or(false)
        });
        if deleted.await.unwrap_or(false) {
            return Ok(());
        }
        let message = "the response cannot be deleted now; try again";
        Err(ApiError::new(ApiErrorKind::Overloaded, message))
    }

    /// Returns when all that waits has been written, or when that takes too long.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        let flushed = timeout(PATIENCE, async {
            self.work.send(Work::Flush(done)).await.is_ok() && written.await.is_ok()
        });
        if !flushed.await.unwrap_or(false) {
            log::warn!("store: not every kept reply could be written");
        }
    }
}

fn size_of_reply(reply: &StoredResponse) -> usize {
    reply.input.len() + reply.reply.len()
}

/// As it was kept in memory: its output is a part of it.
fn kept(format: Format, found: StoredResponse) -> Option<StoredConversationTurn> {
    let keeper = format.codec().keeper()?;
    let input = Items {
        text: found.input.into(),
        count: usize::try_from(found.input_items).unwrap_or(usize::MAX),
    };
    StoredConversationTurn::from_items(found.previous, &input, found.reply.into(), keeper)
}

struct Writer {
    store: Store,
    ttl: Duration,
    bytes: Arc<AtomicUsize>,
    /// In a row.
    lost: u64,
}

impl Writer {
    async fn run(mut self, mut waiting: mpsc::Receiver<Work>) {
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                work = waiting.recv() => match work {
                    Some(work) => self.do_work(work).await,
                    None => return,
                },
                _ = sweep.tick() => {
                    // A store that is away has its turn in a minute.
                    let _ = self.store.delete_expired_responses().await;
                }
            }
        }
    }

    async fn do_work(&mut self, work: Work) {
        match work {
            Work::Keep { owner, id, reply } => {
                let size = size_of_reply(&reply);
                let ttl = i64::try_from(self.ttl.as_millis()).unwrap_or(i64::MAX);
                let expires = Timestamp::now().as_millisecond().saturating_add(ttl);
                let kept = self
                    .store
                    .insert_response(&owner, &id, reply, expires)
                    .await;
                self.bytes.fetch_sub(size, Ordering::AcqRel);
                self.tell(kept);
            }
            // Who asked may have stopped waiting.
            Work::Forget { owner, id, done } => {
                let _ = done.send(self.store.delete_response(&owner, &id).await.is_ok());
            }
            Work::Flush(done) => {
                let _ = done.send(());
            }
        }
    }

    /// A store that is away is told of once, not with every reply.
    fn tell(&mut self, kept: Result<(), StoreError>) {
        match kept {
            Ok(()) if self.lost > 0 => {
                let lost = self.lost;
                log::warn!("store: {lost} replies were not kept, and will not outlive the process");
                self.lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if self.lost == 0 {
                    log::warn!("store: replies cannot be kept: {error}");
                }
                self.lost += 1;
            }
        }
    }
}

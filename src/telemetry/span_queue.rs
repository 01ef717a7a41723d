//! The spans that wait to be exported: bounded in number and bytes, so that a receiver that is slow costs no request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::otlp::Span;
use crate::metrics::{Metrics, SpanOutcome};
use crate::runtime::OwnerShare;

/// Requests whose spans may wait, and bytes of all these spans.
const MAX_QUEUED: WaitingSpans = WaitingSpans {
    requests: 2048,
    bytes: 32 << 20,
};
/// What one owner of keys, or all clients without a right key, may have of that.
const MAX_OWN_QUEUED: WaitingSpans = WaitingSpans {
    requests: MAX_QUEUED.requests / 2,
    bytes: MAX_QUEUED.bytes / 2,
};
/// Spans that are sent at once.
const BATCH_SPANS: usize = 512;
/// Bytes that are sent at once, about.
const BATCH_BYTES: usize = 2 << 20;
/// How long spans wait for others.
const BATCH_TIME: Duration = Duration::from_secs(5);

enum QueueMessage {
    Spans(RecordedSpans),
    /// Acknowledged when everything before it has been sent.
    Flush(oneshot::Sender<()>),
}

/// The spans of one request.
struct RecordedSpans {
    spans: Vec<Span>,
    bytes: usize,
    /// `None`: no right key.
    owner: Option<Arc<OwnerShare>>,
}

/// How much waits.
#[derive(Default, Clone, Copy)]
struct WaitingSpans {
    requests: usize,
    bytes: usize,
}

/// What waits in all, and of each owner by its address: it lives as long as something of it waits.
#[derive(Default)]
struct SpanShares {
    all: WaitingSpans,
    by_owner: HashMap<usize, WaitingSpans>,
}

impl RecordedSpans {
    fn owner_address(&self) -> usize {
        let owner = self.owner.as_ref();
        owner.map_or(0, |owner| Arc::as_ptr(owner).addr())
    }
}

impl WaitingSpans {
    const fn has_room(self, bytes: usize, max: WaitingSpans) -> bool {
        self.requests < max.requests && self.bytes.saturating_add(bytes) <= max.bytes
    }

    const fn add(&mut self, bytes: usize) {
        self.requests += 1;
        self.bytes += bytes;
    }

    const fn remove(&mut self, bytes: usize) {
        self.requests -= 1;
        self.bytes -= bytes;
    }
}

impl SpanShares {
    /// Counts the spans of a request; `false`: there is no room.
    fn add(&mut self, recorded: &RecordedSpans) -> bool {
        let (address, bytes) = (recorded.owner_address(), recorded.bytes);
        let mut own = self.by_owner.get(&address).copied().unwrap_or_default();
        if !(self.all.has_room(bytes, MAX_QUEUED) && own.has_room(bytes, MAX_OWN_QUEUED)) {
            return false;
        }
        self.all.add(bytes);
        own.add(bytes);
        self.by_owner.insert(address, own);
        true
    }

    fn remove(&mut self, recorded: &RecordedSpans) {
        self.all.remove(recorded.bytes);
        let address = recorded.owner_address();
        if let Some(own) = self.by_owner.get_mut(&address) {
            own.remove(recorded.bytes);
            if own.requests == 0 {
                self.by_owner.remove(&address);
            }
        }
    }
}

fn locked(shares: &Mutex<SpanShares>) -> MutexGuard<'_, SpanShares> {
    shares.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of the queue where requests leave their spans.
#[derive(Clone)]
pub(super) struct SpanQueue {
    messages: mpsc::Sender<QueueMessage>,
    shares: Arc<Mutex<SpanShares>>,
    metrics: Arc<Metrics>,
}

/// The end of the queue where batches are taken.
pub(super) struct QueuedSpans {
    messages: mpsc::Receiver<QueueMessage>,
    shares: Arc<Mutex<SpanShares>>,
}

/// Spans that are sent at once.
#[derive(Default)]
pub(super) struct SpanBatch {
    pub(super) spans: Vec<Span>,
    bytes: usize,
    /// Whoever waits for these spans to be sent.
    flushed: Option<oneshot::Sender<()>>,
}

impl SpanQueue {
    pub(super) fn new(metrics: Arc<Metrics>) -> (SpanQueue, QueuedSpans) {
        let (messages, received) = mpsc::channel(MAX_QUEUED.requests);
        let shares = Arc::<Mutex<SpanShares>>::default();
        let queued = QueuedSpans {
            messages: received,
            shares: shares.clone(),
        };
        let queue = SpanQueue {
            messages,
            shares,
            metrics,
        };
        (queue, queued)
    }

    pub(super) fn push(&self, owner: Option<&Arc<OwnerShare>>, spans: Vec<Span>) {
        let (count, bytes) = (spans.len(), spans.iter().map(Span::encoded_len).sum());
        let recorded = RecordedSpans {
            spans,
            bytes,
            owner: owner.cloned(),
        };
        let mut shares = locked(&self.shares);
        let is_taken = shares.add(&recorded)
            && match self.messages.try_send(QueueMessage::Spans(recorded)) {
                Ok(()) => true,
                Err(error) => {
                    if let QueueMessage::Spans(recorded) = error.into_inner() {
                        shares.remove(&recorded);
                    }
                    false
                }
            };
        if !is_taken {
            self.metrics.count_spans(SpanOutcome::Dropped, count);
        }
    }

    pub(super) async fn flush(&self, limit: Duration) {
        let flushed = async {
            let (done, is_done) = oneshot::channel();
            if self.messages.send(QueueMessage::Flush(done)).await.is_ok() {
                // An error only says that the exporter is gone.
                let _ = is_done.await;
            }
        };
        if timeout(limit, flushed).await.is_err() {
            log::warn!("telemetry: the last spans could not be sent in time, they are lost");
        }
    }
}

impl QueuedSpans {
    /// Waits for spans and for others that can be sent with them. `None`: nothing will come any more.
    pub(super) async fn next_batch(&mut self) -> Option<SpanBatch> {
        let mut batch = SpanBatch::default();
        batch.take(self.messages.recv().await?, &self.shares);
        let until = Instant::now() + BATCH_TIME;
        while !batch.is_full() {
            match timeout_at(until, self.messages.recv()).await {
                Ok(Some(message)) => batch.take(message, &self.shares),
                // What is there is sent, and the next call finds out that nothing follows.
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }
}

impl SpanBatch {
    fn take(&mut self, message: QueueMessage, shares: &Mutex<SpanShares>) {
        match message {
            QueueMessage::Spans(recorded) => {
                locked(shares).remove(&recorded);
                self.bytes += recorded.bytes;
                self.spans.extend(recorded.spans);
            }
            QueueMessage::Flush(done) => self.flushed = Some(done),
        }
    }

    fn is_full(&self) -> bool {
        self.flushed.is_some() || self.spans.len() >= BATCH_SPANS || self.bytes >= BATCH_BYTES
    }

    /// Tells whoever waits that the batch is sent, or given up.
    pub(super) fn acknowledge(self) {
        if let Some(flushed) = self.flushed {
            // The caller may have stopped waiting.
            let _ = flushed.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_owner_leaves_half_of_the_queue_to_others() {
        let (queue, mut queued) = SpanQueue::new(Arc::new(Metrics::new()));
        let [much, little] = [(); 2].map(|()| Arc::new(OwnerShare::default()));
        let waiting = || locked(&queue.shares).all.requests;
        for _ in 0..MAX_QUEUED.requests {
            queue.push(Some(&much), vec![Span::default()]);
        }
        assert_eq!(waiting(), MAX_OWN_QUEUED.requests);
        let name = "x".repeat(MAX_OWN_QUEUED.bytes);
        let large = Span {
            name,
            ..Span::default()
        };
        queue.push(None, vec![large]);
        assert_eq!(waiting(), MAX_OWN_QUEUED.requests);
        queue.push(Some(&little), vec![Span::default()]);
        queue.push(None, vec![Span::default()]);
        assert_eq!(waiting(), MAX_OWN_QUEUED.requests + 2);
        drop(queue.messages);
        while queued.next_batch().await.is_some() {}
        let shares = locked(&queue.shares);
        assert_eq!((shares.all.requests, shares.all.bytes), (0, 0));
    }
}

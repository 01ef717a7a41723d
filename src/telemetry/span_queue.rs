//! The spans that wait to be exported: bounded in number and bytes, so that a receiver that is slow costs no request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prost::Message as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::otlp::Span;
use crate::metrics::{Metrics, SpanOutcome};

/// Requests whose spans may wait.
const MAX_QUEUED: usize = 2048;
/// Bytes of all spans that may wait.
const MAX_QUEUED_BYTES: usize = 32 << 20;
/// Spans that are sent at once.
const BATCH_SPANS: usize = 512;
/// Bytes that are sent at once, about.
const BATCH_BYTES: usize = 2 << 20;
/// How long spans wait for others.
const BATCH_TIME: Duration = Duration::from_secs(5);

enum QueueMessage {
    Spans(Vec<Span>, usize),
    /// Acknowledged when everything before it has been sent.
    Flush(oneshot::Sender<()>),
}

/// The end of the queue where requests leave their spans.
#[derive(Clone)]
pub(super) struct SpanQueue {
    messages: mpsc::Sender<QueueMessage>,
    bytes: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
}

/// The end of the queue where batches are taken.
pub(super) struct QueuedSpans {
    messages: mpsc::Receiver<QueueMessage>,
    bytes: Arc<AtomicUsize>,
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
        let (messages, received) = mpsc::channel(MAX_QUEUED);
        let bytes = Arc::<AtomicUsize>::default();
        let queued = QueuedSpans {
            messages: received,
            bytes: bytes.clone(),
        };
        let queue = SpanQueue {
            messages,
            bytes,
            metrics,
        };
        (queue, queued)
    }

    pub(super) fn push(&self, spans: Vec<Span>) {
        let (count, bytes) = (spans.len(), spans.iter().map(Span::encoded_len).sum());
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_taken = before + bytes <= MAX_QUEUED_BYTES && {
            let message = QueueMessage::Spans(spans, bytes);
            self.messages.try_send(message).is_ok()
        };
        if !is_taken {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
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
        batch.take(self.messages.recv().await?);
        let until = Instant::now() + BATCH_TIME;
        while !batch.is_full() {
            match timeout_at(until, self.messages.recv()).await {
                Ok(Some(message)) => batch.take(message),
                // What is there is sent, and the next call finds out that nothing follows.
                Ok(None) | Err(_) => break,
            }
        }
        self.bytes.fetch_sub(batch.bytes, Ordering::Relaxed);
        Some(batch)
    }
}

impl SpanBatch {
    fn take(&mut self, message: QueueMessage) {
        match message {
            QueueMessage::Spans(spans, bytes) => {
                self.spans.extend(spans);
                self.bytes += bytes;
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

//! The requests in flight at an upstream, and the queue of those that wait.

mod queue;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::timeout;

use queue::UpstreamQueue;

use crate::config::ConcurrencyLimit;

/// The load of an upstream. Outlives reloads: requests that began before one still count after it.
#[derive(Default)]
pub struct UpstreamLoad {
    in_flight: AtomicU64,
    /// How many requests wait, or are about to: known without the lock of the queue.
    queued: AtomicU64,
    queue: Mutex<UpstreamQueue<UpstreamPermit>>,
    /// The last result of the health check.
    down: AtomicBool,
}

/// Why a request got no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueError {
    /// The queue is full.
    Full,
    /// The queue timeout has passed.
    TimedOut,
}

/// One request in flight at the upstream.
#[must_use = "the permit is released when this is dropped"]
pub struct UpstreamPermit(Option<Arc<UpstreamLoad>>);

impl Drop for UpstreamPermit {
    fn drop(&mut self) {
        if let Some(load) = self.0.take() {
            load.in_flight.fetch_sub(1, Ordering::SeqCst);
            // Whoever is queued later sees the free place.
            if load.queued.load(Ordering::SeqCst) > 0 {
                load.serve_queue();
            }
        }
    }
}

impl UpstreamLoad {
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// Returns whether the state has changed.
    pub fn set_down(&self, down: bool) -> bool {
        self.down.swap(down, Ordering::Relaxed) != down
    }

    pub fn has_capacity(&self, concurrency: &ConcurrencyLimit) -> bool {
        concurrency
            .max_in_flight
            .is_none_or(|limit| self.in_flight() < limit)
    }

    /// A permit without waiting; `None`: the limit is reached or others are queued.
    pub fn try_acquire(
        self: &Arc<UpstreamLoad>,
        concurrency: &ConcurrencyLimit,
    ) -> Option<UpstreamPermit> {
        let Some(limit) = concurrency.max_in_flight else {
            self.in_flight.fetch_add(1, Ordering::SeqCst);
            return Some(UpstreamPermit(Some(self.clone())));
        };
        // A new request must not overtake the queue.
        (self.queued() == 0).then(|| self.try_take(limit)).flatten()
    }

    /// A permit for a request of this key, at once or after waiting in the queue.
    pub async fn acquire(
        self: &Arc<UpstreamLoad>,
        concurrency: &ConcurrencyLimit,
        key: &Arc<str>,
    ) -> Result<UpstreamPermit, QueueError> {
        if let Some(permit) = self.try_acquire(concurrency) {
            return Ok(permit);
        }
        let (sender, permit) = oneshot::channel();
        let id = match self.enqueue(concurrency, key, sender)? {
            Enqueued::Permit(permit) => return Ok(permit),
            Enqueued::Waiting(id) => id,
        };
        let _place = QueuePlace {
            load: self,
            key,
            id,
        };
        match timeout(concurrency.queue_timeout, permit).await {
            Ok(Ok(permit)) => Ok(permit),
            // Another key has got the place.
            Ok(Err(_)) => Err(QueueError::Full),
            Err(_) => Err(QueueError::TimedOut),
        }
    }

    fn enqueue(
        self: &Arc<UpstreamLoad>,
        concurrency: &ConcurrencyLimit,
        key: &Arc<str>,
        sender: oneshot::Sender<UpstreamPermit>,
    ) -> Result<Enqueued, QueueError> {
        let limit = concurrency.max_in_flight.unwrap_or(u64::MAX);
        let mut queue = self.queue();
        // From here on no place that comes free is missed.
        self.queued.store(queue.len() + 1, Ordering::SeqCst);
        let permit = (queue.len() == 0).then(|| self.try_take(limit)).flatten();
        let enqueued = match permit {
            Some(permit) => Ok(Enqueued::Permit(permit)),
            None if queue.len() < concurrency.queue || queue.make_room(key) => {
                Ok(Enqueued::Waiting(queue.push(key, limit, sender)))
            }
            None => Err(QueueError::Full),
        };
        self.queued.store(queue.len(), Ordering::SeqCst);
        enqueued
    }

    /// Gives free places to those who wait.
    fn serve_queue(self: &Arc<UpstreamLoad>) {
        let mut queue = self.queue();
        while let Some(first) = queue.first()
            && let Some(permit) = self.try_take(first.limit)
            && let Some(request) = queue.pop()
        {
            if let Err(mut unused) = request.permit.send(permit) {
                // It has just gone. The lock is held, so that the place is given back without a look at the queue.
                unused.0 = None;
                self.in_flight.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.queued.store(queue.len(), Ordering::SeqCst);
    }

    fn try_take(self: &Arc<UpstreamLoad>, limit: u64) -> Option<UpstreamPermit> {
        let below = |count: u64| (count < limit).then_some(count + 1);
        self.in_flight
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, below)
            .ok()
            .map(|_| UpstreamPermit(Some(self.clone())))
    }

    fn queue(&self) -> MutexGuard<'_, UpstreamQueue<UpstreamPermit>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of a request that found no free place.
enum Enqueued {
    /// There was one after all.
    Permit(UpstreamPermit),
    Waiting(u64),
}

/// The place of a request in the queue, which it leaves when the client goes away.
struct QueuePlace<'l> {
    load: &'l UpstreamLoad,
    key: &'l str,
    id: u64,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let mut queue = self.load.queue();
        queue.remove(self.key, self.id);
        self.load.queued.store(queue.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;

//! The requests in flight at an upstream, and the queue of those that wait.

mod key_counts;
mod queue;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::timeout;

use key_counts::KeyCounts;
use queue::UpstreamQueue;

use crate::config::ConcurrencyLimit;

/// The load of an upstream. Outlives reloads: requests that began before one still count after it.
#[derive(Default)]
pub struct UpstreamLoad {
    in_flight: AtomicU64,
    /// How many requests wait, or are about to: known without the lock of the queue.
    queued: AtomicU64,
    queue: Mutex<UpstreamQueue<UpstreamPermit>>,
    /// Of the requests in flight, those that began while there was a limit.
    of_keys: KeyCounts,
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
pub struct UpstreamPermit {
    load: Option<Arc<UpstreamLoad>>,
    /// `None`: there was no limit.
    key: Option<Arc<str>>,
}

impl Drop for UpstreamPermit {
    fn drop(&mut self) {
        if let Some(load) = self.load.take() {
            load.release(self.key.as_deref());
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
        key: &Arc<str>,
    ) -> Option<UpstreamPermit> {
        let Some(limit) = concurrency.max_in_flight else {
            self.in_flight.fetch_add(1, Ordering::SeqCst);
            return Some(UpstreamPermit {
                load: Some(self.clone()),
                key: None,
            });
        };
        // A new request must not overtake the queue.
        let is_free = self.queued() == 0;
        is_free.then(|| self.try_take(limit, key)).flatten()
    }

    /// A permit for a request of this key, at once or after waiting in the queue.
    pub async fn acquire(
        self: &Arc<UpstreamLoad>,
        concurrency: &ConcurrencyLimit,
        key: &Arc<str>,
    ) -> Result<UpstreamPermit, QueueError> {
        if let Some(permit) = self.try_acquire(concurrency, key) {
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
        let is_first = queue.len() == 0;
        let permit = is_first.then(|| self.try_take(limit, key)).flatten();
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

    /// Gives free places to those who wait, first to the key that has fewest.
    fn serve_queue(self: &Arc<UpstreamLoad>) {
        let mut queue = self.queue();
        loop {
            self.of_keys.look(|count| queue.turn_to_fewest(count));
            let Some((key, limit)) = queue.first() else {
                break;
            };
            let Some(permit) = self.try_take(limit, key) else {
                break;
            };
            let Some(request) = queue.pop() else { break };
            if let Err(mut unused) = request.permit.send(permit) {
                // It has just gone. The lock is held, so that the place is given back without a look at the queue.
                unused.load = None;
                self.release(unused.key.as_deref());
            }
        }
        self.queued.store(queue.len(), Ordering::SeqCst);
    }

    fn try_take(self: &Arc<UpstreamLoad>, limit: u64, key: &Arc<str>) -> Option<UpstreamPermit> {
        let below = |count: u64| (count < limit).then_some(count + 1);
        let taken = self
            .in_flight
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, below);
        taken.ok()?;
        self.of_keys.enter(key);
        Some(UpstreamPermit {
            load: Some(self.clone()),
            key: Some(key.clone()),
        })
    }

    /// Gives a place back.
    fn release(&self, key: Option<&str>) {
        if let Some(key) = key {
            self.of_keys.leave(key);
        }
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
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

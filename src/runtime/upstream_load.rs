//! The requests in flight at an upstream, and the queue of those that wait.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::config::ConcurrencyLimit;

/// The load of an upstream. Outlives reloads: requests that began before one still count after it.
#[derive(Default)]
pub struct UpstreamLoad {
    in_flight: AtomicU64,
    queued: AtomicU64,
    freed: Notify,
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
pub struct UpstreamPermit(Arc<UpstreamLoad>);

impl Drop for UpstreamPermit {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.0.freed.notify_one();
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
            self.in_flight.fetch_add(1, Ordering::AcqRel);
            return Some(UpstreamPermit(self.clone()));
        };
        // A new request must not overtake the queue.
        (self.queued() == 0).then(|| self.try_take(limit)).flatten()
    }

    /// A permit at once, or after waiting in the queue.
    pub async fn acquire(
        self: &Arc<UpstreamLoad>,
        concurrency: &ConcurrencyLimit,
    ) -> Result<UpstreamPermit, QueueError> {
        if let Some(permit) = self.try_acquire(concurrency) {
            return Ok(permit);
        }
        let limit = concurrency.max_in_flight.unwrap_or(u64::MAX);
        let mut may_take = self.queued() == 0;
        let _turn = self.enqueue(concurrency.queue).ok_or(QueueError::Full)?;
        let freed = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                // From here on no notification is missed.
                may_take |= freed.as_mut().enable();
                if may_take && let Some(permit) = self.try_take(limit) {
                    // One notification may stand for several permits.
                    if self.has_capacity(concurrency) {
                        self.freed.notify_one();
                    }
                    return permit;
                }
                freed.await;
                may_take = true;
            }
        };
        timeout(concurrency.queue_timeout, freed)
            .await
            .map_err(|_| QueueError::TimedOut)
    }

    fn try_take(self: &Arc<UpstreamLoad>, limit: u64) -> Option<UpstreamPermit> {
        let below = |count: u64| (count < limit).then_some(count + 1);
        self.in_flight
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below)
            .ok()
            .map(|_| UpstreamPermit(self.clone()))
    }

    fn enqueue(&self, queue: u64) -> Option<QueuedRequest<'_>> {
        let below = |count: u64| (count < queue).then_some(count + 1);
        self.queued
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below)
            .ok()
            .map(|_| QueuedRequest(self))
    }
}

/// One queued request; it leaves the queue when the client goes away.
struct QueuedRequest<'l>(&'l UpstreamLoad);

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;

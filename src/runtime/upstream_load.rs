//! What an upstream is carrying right now, and the queue before its door.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::config::ConcurrencyLimit;

/// Outlives reloads: requests that began before one still count after it.
#[derive(Default)]
pub struct UpstreamLoad {
    in_flight: AtomicU64,
    waiting: AtomicU64,
    freed: Notify,
    /// What the upstream's own health check said last.
    down: AtomicBool,
}

/// Why an upstream cannot be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueError {
    /// Nobody else may wait.
    Full,
    /// Waited for as long as is allowed.
    TimedOut,
}

/// One request that the upstream is carrying.
#[must_use = "the place is given back when this is dropped"]
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

    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// Returns whether this is news.
    pub fn set_down(&self, down: bool) -> bool {
        self.down.swap(down, Ordering::Relaxed) != down
    }

    pub fn has_capacity(&self, room: &ConcurrencyLimit) -> bool {
        room.max_in_flight
            .is_none_or(|limit| self.in_flight() < limit)
    }

    /// A place, where there is one now.
    pub fn try_acquire(
        self: &Arc<UpstreamLoad>,
        room: &ConcurrencyLimit,
    ) -> Option<UpstreamPermit> {
        let Some(limit) = room.max_in_flight else {
            self.in_flight.fetch_add(1, Ordering::AcqRel);
            return Some(UpstreamPermit(self.clone()));
        };
        // Who comes later must not overtake those who wait.
        (self.waiting() == 0).then(|| self.take(limit)).flatten()
    }

    /// A place now, or after a wait in the queue.
    pub async fn acquire(
        self: &Arc<UpstreamLoad>,
        room: &ConcurrencyLimit,
    ) -> Result<UpstreamPermit, QueueError> {
        if let Some(place) = self.try_acquire(room) {
            return Ok(place);
        }
        let limit = room.max_in_flight.unwrap_or(u64::MAX);
        let mut may_take = self.waiting() == 0;
        let _turn = self.queue_up(room.queue).ok_or(QueueError::Full)?;
        let freed = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                // From here on no call is missed.
                may_take |= freed.as_mut().enable();
                if may_take && let Some(place) = self.take(limit) {
                    // One call may stand for several places.
                    if self.has_capacity(room) {
                        self.freed.notify_one();
                    }
                    return place;
                }
                freed.await;
                may_take = true;
            }
        };
        timeout(room.queue_timeout, freed)
            .await
            .map_err(|_| QueueError::TimedOut)
    }

    fn take(self: &Arc<UpstreamLoad>, limit: u64) -> Option<UpstreamPermit> {
        let below = |count: u64| (count < limit).then_some(count + 1);
        self.in_flight
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below)
            .ok()
            .map(|_| UpstreamPermit(self.clone()))
    }

    fn queue_up(&self, queue: u64) -> Option<Turn<'_>> {
        let below = |count: u64| (count < queue).then_some(count + 1);
        self.waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below)
            .ok()
            .map(|_| Turn(self))
    }
}

/// One who waits; a client that goes away leaves the queue.
struct Turn<'l>(&'l UpstreamLoad);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;

//! How many queries of one owner are with the store at once, so that one key never holds all of its connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A quarter of the connections.
const QUERIES_AT_ONCE: usize = 2;

/// The owners that have queries now.
#[derive(Default)]
pub(super) struct QueryShares(Mutex<HashMap<String, Arc<Semaphore>>>);

/// One query of an owner; the next one goes on when this is dropped.
pub(super) struct QueryShare<'a> {
    shares: &'a QueryShares,
    owner: &'a str,
    /// `None`: it still waits.
    permit: Option<OwnedSemaphorePermit>,
}

impl QueryShares {
    /// Waits until the owner has fewer queries than it may.
    pub(super) async fn acquire<'a>(&'a self, owner: &'a str) -> QueryShare<'a> {
        let of_owner = {
            let mut owners = self.owners();
            let new = || Arc::new(Semaphore::new(QUERIES_AT_ONCE));
            owners.entry(owner.to_owned()).or_insert_with(new).clone()
        };
        // It exists while it waits, so that an owner who stops waiting is forgotten too.
        let mut share = QueryShare {
            shares: self,
            owner,
            permit: None,
        };
        // The semaphore is never closed.
        share.permit = of_owner.acquire_owned().await.ok();
        share
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QueryShare<'_> {
    fn drop(&mut self) {
        let mut owners = self.shares.owners();
        self.permit = None;
        let is_unused = |of_owner: &Arc<Semaphore>| Arc::strong_count(of_owner) == 1;
        if owners.get(self.owner).is_some_and(is_unused) {
            owners.remove(self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn one_owner_waits_for_itself_alone() {
        let shares = QueryShares::default();
        let first = shares.acquire("greedy").await;
        let second = shares.acquire("greedy").await;
        let mut third = pin!(shares.acquire("greedy"));
        assert!(third.as_mut().now_or_never().is_none());
        let other = shares.acquire("other").now_or_never();
        assert!(other.is_some());
        drop(first);
        let third = third.now_or_never();
        assert!(third.is_some());
        drop((second, third, other));
        assert!(shares.owners().is_empty());
    }

    #[tokio::test]
    async fn an_owner_who_stops_waiting_is_forgotten() {
        let shares = QueryShares::default();
        let held = (
            shares.acquire("greedy").await,
            shares.acquire("greedy").await,
        );
        assert!(shares.acquire("greedy").now_or_never().is_none());
        drop(held);
        assert!(shares.owners().is_empty());
    }
}

//! How many queries of one owner are with the store at once, so that nobody ever holds all of its connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A quarter of the connections.
const QUERIES_AT_ONCE: usize = 2;

/// The owners that have queries now, and who owns the keys of people.
#[derive(Default)]
pub(super) struct QueryShares {
    running: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// The account of a key by its id, where one person may have several keys.
    accounts: RwLock<HashMap<String, Arc<str>>>,
}

/// One query of an owner; the next one goes on when this is dropped.
pub(super) struct QueryShare<'a> {
    shares: &'a QueryShares,
    owner: &'a str,
    /// `None`: it still waits.
    permit: Option<OwnedSemaphorePermit>,
}

impl QueryShares {
    /// Notes to whose account a key belongs; `None`: it is its own owner.
    pub(super) fn set_account(&self, key: &str, account: Option<&str>) {
        let accounts = self.accounts.write();
        let mut accounts = accounts.unwrap_or_else(PoisonError::into_inner);
        match account {
            Some(account) => accounts.insert(key.to_owned(), account.into()),
            None => accounts.remove(key),
        };
    }

    /// Returns the account whose queries those of a key are, if it is one of a person.
    pub(super) fn account(&self, key: &str) -> Option<Arc<str>> {
        let accounts = self.accounts.read();
        let accounts = accounts.unwrap_or_else(PoisonError::into_inner);
        accounts.get(key).cloned()
    }

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
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn the_queries_of_a_person_are_those_of_one_account() {
        let shares = QueryShares::default();
        assert_eq!(shares.account("one"), None);
        shares.set_account("one", Some("ada"));
        shares.set_account("two", Some("ada"));
        assert_eq!(shares.account("one"), shares.account("two"));
        assert_eq!(shares.account("one").as_deref(), Some("ada"));
        shares.set_account("one", None);
        assert_eq!(shares.account("one"), None);
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

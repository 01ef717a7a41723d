//! How many large bodies are worked on at once: by all keys, and by one of them.

use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places for such work.
#[derive(Debug)]
pub(super) struct LargeBodyPlaces(Arc<Semaphore>);

/// One place; it is free when this is dropped.
#[derive(Debug)]
#[must_use = "the place is free when this is dropped"]
pub struct LargeBodyPlace {
    _of_owner: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

impl LargeBodyPlaces {
    /// The places of all keys: some of the work may wait for a processor.
    pub(super) fn of_all() -> LargeBodyPlaces {
        LargeBodyPlaces(Arc::new(Semaphore::new(processors() * 2)))
    }

    /// The places of one owner, half of those.
    pub(super) fn of_owner() -> LargeBodyPlaces {
        LargeBodyPlaces(Arc::new(Semaphore::new(processors())))
    }

    /// Waits for a place, first among the requests of the owner and then among those of all: an owner with many large
    /// bodies has no more of them in the line of all than it may have places. `None` at the end of the process.
    pub(super) async fn take(
        of_owner: Arc<Semaphore>,
        of_all: Arc<Semaphore>,
    ) -> Option<LargeBodyPlace> {
        Some(LargeBodyPlace {
            _of_owner: of_owner.acquire_owned().await.ok()?,
            _of_all: of_all.acquire_owned().await.ok()?,
        })
    }

    pub(super) fn semaphore(&self) -> Arc<Semaphore> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn one_owner_takes_half_of_the_places() {
        let all = LargeBodyPlaces::of_all();
        let owners = [LargeBodyPlaces::of_owner(), LargeBodyPlaces::of_owner()];
        let take = |owner: usize| {
            let (of_owner, of_all) = (owners[owner].semaphore(), all.semaphore());
            LargeBodyPlaces::take(of_owner, of_all)
                .now_or_never()
                .flatten()
        };
        let mut first: Vec<LargeBodyPlace> = std::iter::from_fn(|| take(0)).collect();
        assert_eq!(first.len(), processors());
        let second: Vec<LargeBodyPlace> = std::iter::from_fn(|| take(1)).collect();
        assert_eq!(second.len(), processors());
        assert!(take(0).is_none());
        first.pop();
        assert!(take(0).is_some());
    }
}

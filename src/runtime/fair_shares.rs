//! Memory that all keys share: when it is full, the key that holds most gives up its oldest.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use ahash::RandomState;

/// What one key holds of the memory.
pub trait MemoryShare {
    /// In bytes.
    fn size(&self) -> usize;

    /// When its oldest entry was last used.
    fn oldest_use(&self) -> Option<Instant>;

    /// Frees what nobody can ask for any more.
    fn remove_expired(&mut self);

    /// Frees the oldest entry.
    fn evict_oldest(&mut self);
}

/// The shares of all keys. A key that holds less than another loses nothing to it, however much that
/// other adds.
#[derive(Debug)]
pub struct FairShares<S> {
    limit: usize,
    size: usize,
    shares: HashMap<Arc<str>, S, RandomState>,
}

impl<S: MemoryShare> FairShares<S> {
    pub fn new(limit: usize) -> FairShares<S> {
        FairShares {
            limit,
            size: 0,
            shares: HashMap::default(),
        }
    }

    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The size of all shares.
    pub const fn size(&self) -> usize {
        self.size
    }

    pub fn get(&self, owner: &str) -> Option<&S> {
        self.shares.get(owner)
    }

    /// Changes the share of a key, which may shrink or grow by that; the memory was made free before.
    pub fn update<T>(&mut self, owner: &str, change: impl FnOnce(&mut S) -> T) -> Option<T> {
        let share = self.shares.get_mut(owner)?;
        let before = share.size();
        let result = change(share);
        self.size = self.size - before + share.size();
        if share.size() == 0 {
            self.shares.remove(owner);
        }
        Some(result)
    }

    /// Adds to the share of a key. `needed`: by how much it grows; others are evicted for it.
    pub fn add(
        &mut self,
        owner: &str,
        needed: usize,
        new: impl FnOnce() -> S,
        add: impl FnOnce(&mut S),
    ) {
        self.make_room(needed);
        if !self.shares.contains_key(owner) {
            self.shares.insert(owner.into(), new());
        }
        self.update(owner, add);
    }

    fn make_room(&mut self, needed: usize) {
        if self.size + needed <= self.limit {
            return;
        }
        let owners: Vec<Arc<str>> = self.shares.keys().cloned().collect();
        for owner in owners {
            self.update(&owner, S::remove_expired);
        }
        while self.size + needed > self.limit {
            let Some(owner) = self.largest() else { return };
            self.update(&owner, S::evict_oldest);
        }
    }

    /// The key that holds most; of several, the one that has used it least recently.
    fn largest(&self) -> Option<Arc<str>> {
        let shares = self.shares.iter();
        let largest = shares.max_by_key(|(_, share)| (share.size(), Reverse(share.oldest_use())));
        largest.map(|(owner, _)| owner.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Sizes of entries, oldest first.
    #[derive(Default)]
    struct Sizes(VecDeque<usize>);

    impl MemoryShare for Sizes {
        fn size(&self) -> usize {
            self.0.iter().sum()
        }

        fn oldest_use(&self) -> Option<Instant> {
            None
        }

        fn remove_expired(&mut self) {
            self.0.retain(|size| *size != 7);
        }

        fn evict_oldest(&mut self) {
            self.0.pop_front();
        }
    }

    fn add(shares: &mut FairShares<Sizes>, owner: &str, size: usize) {
        shares.add(owner, size, Sizes::default, |share| share.0.push_back(size));
    }

    fn sizes(shares: &FairShares<Sizes>, owner: &str) -> Vec<usize> {
        let share = shares.get(owner);
        share.map_or_else(Vec::new, |share| share.0.iter().copied().collect())
    }

    #[test]
    fn who_holds_most_gives_up_its_oldest() {
        let mut shares = FairShares::new(100);
        add(&mut shares, "quiet", 20);
        for size in 1..100 {
            add(&mut shares, "loud", size.min(30));
            assert!(shares.size() <= 100);
            assert_eq!(sizes(&shares, "quiet"), [20]);
        }
        assert_eq!(sizes(&shares, "loud"), [30, 30]);
        // The quiet one may take up to its half.
        add(&mut shares, "quiet", 30);
        assert_eq!(sizes(&shares, "loud"), [30]);
        assert_eq!(sizes(&shares, "quiet"), [20, 30]);
        add(&mut shares, "quiet", 30);
        assert_eq!(sizes(&shares, "loud"), [30]);
        assert_eq!(sizes(&shares, "quiet"), [30, 30]);
    }

    #[test]
    fn what_has_expired_goes_first_and_empty_shares_with_it() {
        let mut shares = FairShares::new(100);
        add(&mut shares, "gone", 7);
        add(&mut shares, "large", 90);
        add(&mut shares, "new", 10);
        assert_eq!(sizes(&shares, "large"), [90]);
        assert!(shares.get("gone").is_none());
        assert_eq!(shares.size(), 100);
        shares.update("large", |share| share.0.clear());
        assert!(shares.get("large").is_none());
        assert_eq!((shares.size(), shares.limit()), (10, 100));
    }
}

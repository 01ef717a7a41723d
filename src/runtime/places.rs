//! How many requests are served at once over all keys, and that one key leaves places to the others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::OwnerShare;

/// How long places that come free are kept for keys that have few. Clients that were refused try again sooner.
const CLAIM: Duration = Duration::from_secs(10);

/// The requests being served, of all keys.
#[derive(Default)]
pub(super) struct Places {
    taken: AtomicU64,
    /// Until when a key that has half of the places gets no more: one that has fewer was refused.
    claimed_until: Mutex<Option<Instant>>,
}

/// One request being served, of any key.
#[must_use = "the request counts as ended when this is dropped"]
pub struct GlobalPermit {
    places: Arc<Places>,
    key: Arc<OwnerShare>,
}

impl Drop for GlobalPermit {
    fn drop(&mut self) {
        self.places.taken.fetch_sub(1, Ordering::AcqRel);
        self.key.admitted.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Places {
    pub(super) fn admit(
        self: &Arc<Places>,
        limit: Option<u64>,
        key: &Arc<OwnerShare>,
        now: Instant,
    ) -> Option<GlobalPermit> {
        let limit = limit.unwrap_or(u64::MAX);
        let has_half = key.admitted.load(Ordering::Acquire) >= limit.div_ceil(2);
        if has_half && self.is_claimed(now) {
            return None;
        }
        let below = |count: u64| (count < limit).then_some(count + 1);
        let taken = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below);
        if taken.is_err() {
            if !has_half {
                self.claim(now);
            }
            return None;
        }
        key.admitted.fetch_add(1, Ordering::AcqRel);
        Some(GlobalPermit {
            places: self.clone(),
            key: key.clone(),
        })
    }

    fn is_claimed(&self, now: Instant) -> bool {
        let until = self.claimed_until.lock();
        let until = *until.unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| now < until)
    }

    fn claim(&self, now: Instant) {
        let until = self.claimed_until.lock();
        *until.unwrap_or_else(PoisonError::into_inner) = Some(now + CLAIM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_may_have_all_places_until_another_is_refused() {
        let places = Arc::new(Places::default());
        let (greedy, other) = (Arc::default(), Arc::default());
        let start = Instant::now();
        let admit = |key: &Arc<OwnerShare>, now| places.admit(Some(4), key, now);
        let mut held: Vec<_> = (0..4).map(|_| admit(&greedy, start)).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(admit(&greedy, start).is_none());
        // Nobody else has asked: what comes free is its own again.
        held.pop();
        held.push(admit(&greedy, start));
        assert!(held.iter().all(Option::is_some));
        assert!(admit(&other, start).is_none());
        held.pop();
        assert!(admit(&greedy, start).is_none());
        let first = admit(&other, start);
        assert!(first.is_some());
        held.pop();
        let second = admit(&other, start);
        assert!(second.is_some());
        // Both have half.
        assert!(admit(&other, start).is_none());
        held.pop();
        held.push(admit(&greedy, start));
        assert!(held.iter().all(Option::is_some));
        drop((first, second));
        assert!(admit(&greedy, start + CLAIM / 2).is_none());
        // The other one has not come back.
        held.push(admit(&greedy, start + CLAIM));
        assert!(held.iter().all(Option::is_some));
        drop(held);
        assert_eq!(places.taken.load(Ordering::Acquire), 0);
        assert_eq!(greedy.admitted.load(Ordering::Acquire), 0);
    }

    #[test]
    fn a_single_place_goes_to_whoever_comes() {
        let places = Arc::new(Places::default());
        let (one, other) = (Arc::default(), Arc::default());
        let now = Instant::now();
        for _ in 0..3 {
            let held = places.admit(Some(1), &one, now);
            assert!(held.is_some() && places.admit(Some(1), &other, now).is_none());
            drop(held);
            assert!(places.admit(Some(1), &other, now).is_some());
        }
        assert!(places.admit(None, &one, now).is_some());
    }

    /// Many threads of two keys: never more than the limit, and nothing is left when all have gone.
    #[test]
    fn places_are_counted_under_concurrency() {
        const LIMIT: u64 = 8;
        let places = Arc::new(Places::default());
        let keys: [Arc<OwnerShare>; 2] = [Arc::default(), Arc::default()];
        let now = Instant::now();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (places, key) = (&places, &keys[number % 2]);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        let held = places.admit(Some(LIMIT), key, now);
                        assert!(places.taken.load(Ordering::Acquire) <= LIMIT);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(places.taken.load(Ordering::Acquire), 0);
        assert!(
            keys.iter()
                .all(|key| key.admitted.load(Ordering::Acquire) == 0)
        );
    }
}

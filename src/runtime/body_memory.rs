//! How much memory the bodies of all requests take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::KeyLimiter;

/// The memory that the bodies of all requests take.
#[derive(Debug, Default)]
pub struct BodyMemory {
    used: AtomicUsize,
}

/// The memory of one body, counted until this is dropped.
#[derive(Default)]
pub struct BodyMemoryShare {
    counted_in: Option<(Arc<BodyMemory>, Arc<KeyLimiter>)>,
    bytes: usize,
}

/// Why a body finds no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBodyMemory {
    /// All bodies together would take more than they may.
    Full,
    /// Those of this key would take more than half of that, which is left to other keys.
    KeyShare,
}

impl BodyMemoryShare {
    pub(super) const fn new(memory: Arc<BodyMemory>, key: Arc<KeyLimiter>) -> BodyMemoryShare {
        BodyMemoryShare {
            counted_in: Some((memory, key)),
            bytes: 0,
        }
    }

    /// Counts a body of this size, where all bodies together may take `limit`.
    pub fn grow_to(&mut self, bytes: usize, limit: usize) -> Result<(), NoBodyMemory> {
        let (Some((memory, key)), Some(more)) = (&self.counted_in, bytes.checked_sub(self.bytes))
        else {
            return Ok(());
        };
        let own = self.bytes;
        let of_key = |used: usize| {
            // A single request may take it all, as it is bounded by the limit of a body.
            let most = if used > own { limit / 2 } else { limit };
            used.checked_add(more).filter(|used| *used <= most)
        };
        let of_all = |used: usize| used.checked_add(more).filter(|used| *used <= limit);
        count(&memory.used, of_all).map_err(|_| NoBodyMemory::Full)?;
        if count(key.body_bytes(), of_key).is_err() {
            memory.used.fetch_sub(more, Ordering::AcqRel);
            return Err(NoBodyMemory::KeyShare);
        }
        self.bytes = bytes;
        Ok(())
    }
}

fn count(used: &AtomicUsize, next: impl FnMut(usize) -> Option<usize>) -> Result<usize, usize> {
    used.fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
}

impl Drop for BodyMemoryShare {
    fn drop(&mut self) {
        if let Some((memory, key)) = &self.counted_in {
            memory.used.fetch_sub(self.bytes, Ordering::AcqRel);
            key.body_bytes().fetch_sub(self.bytes, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_one_limit_and_give_back_what_they_took() {
        let memory = Arc::new(BodyMemory::default());
        let share = || BodyMemoryShare::new(memory.clone(), Arc::default());
        let (mut first, mut second) = (share(), share());
        assert_eq!(first.grow_to(60, 100), Ok(()));
        assert_eq!(first.grow_to(40, 100), Ok(()));
        assert_eq!(second.grow_to(40, 100), Ok(()));
        assert_eq!(second.grow_to(41, 100), Err(NoBodyMemory::Full));
        assert!(first.grow_to(usize::MAX, 100).is_err());
        drop(first);
        assert_eq!(second.grow_to(100, 100), Ok(()));
        drop(second);
        assert_eq!(memory.used.load(Ordering::Acquire), 0);
    }

    #[test]
    fn the_bodies_of_one_key_leave_half_to_others() {
        let memory = Arc::new(BodyMemory::default());
        let key = Arc::new(KeyLimiter::default());
        let share = || BodyMemoryShare::new(memory.clone(), key.clone());
        let (mut first, mut second) = (share(), share());
        assert_eq!(first.grow_to(30, 100), Ok(()));
        assert_eq!(second.grow_to(21, 100), Err(NoBodyMemory::KeyShare));
        assert_eq!(second.grow_to(20, 100), Ok(()));
        let mut other = BodyMemoryShare::new(memory.clone(), Arc::default());
        assert_eq!(other.grow_to(50, 100), Ok(()));
        drop((first, other));
        // Alone it may have all of it.
        assert_eq!(second.grow_to(100, 100), Ok(()));
        drop(second);
        assert_eq!(key.body_bytes().load(Ordering::Acquire), 0);
        assert_eq!(memory.used.load(Ordering::Acquire), 0);
    }
}

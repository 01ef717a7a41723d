//! How much memory the bodies of all requests and their responses take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::OwnerShare;

/// The memory that all bodies take.
#[derive(Debug, Default)]
pub struct BodyMemory {
    used: AtomicUsize,
}

/// The memory of a request and its response, counted until this is dropped.
#[derive(Default)]
pub struct BodyMemoryShare {
    counted_in: Option<(Arc<BodyMemory>, Arc<OwnerShare>)>,
    bytes: usize,
    /// How much of it the response takes.
    response: usize,
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
    pub(super) const fn new(memory: Arc<BodyMemory>, key: Arc<OwnerShare>) -> BodyMemoryShare {
        BodyMemoryShare {
            counted_in: Some((memory, key)),
            bytes: 0,
            response: 0,
        }
    }

    /// Counts a request of this size, where all bodies together may take `limit`.
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
        if count(&key.body_bytes, of_key).is_err() {
            memory.used.fetch_sub(more, Ordering::AcqRel);
            return Err(NoBodyMemory::KeyShare);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Counts a response of this size beside the request.
    pub fn grow_response_to(&mut self, bytes: usize, limit: usize) -> Result<(), NoBodyMemory> {
        let more = bytes.saturating_sub(self.response);
        self.grow_to(self.bytes.saturating_add(more), limit)?;
        self.response += more;
        Ok(())
    }

    /// Gives back what the request took; its response may still be there.
    pub fn release_request(&mut self) {
        self.shrink_to(self.response);
    }

    /// Gives back what the response took: another attempt will have its own.
    pub fn release_response(&mut self) {
        let response = std::mem::take(&mut self.response);
        self.shrink_to(self.bytes.saturating_sub(response));
    }

    fn shrink_to(&mut self, bytes: usize) {
        let (Some((memory, key)), Some(less)) = (&self.counted_in, self.bytes.checked_sub(bytes))
        else {
            return;
        };
        memory.used.fetch_sub(less, Ordering::AcqRel);
        key.body_bytes.fetch_sub(less, Ordering::AcqRel);
        self.bytes = bytes;
    }
}

fn count(used: &AtomicUsize, next: impl FnMut(usize) -> Option<usize>) -> Result<usize, usize> {
    used.fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
}

impl Drop for BodyMemoryShare {
    fn drop(&mut self) {
        self.shrink_to(0);
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
    fn a_response_is_counted_beside_its_request_and_longer_than_it() {
        let memory = Arc::new(BodyMemory::default());
        let used = || memory.used.load(Ordering::Acquire);
        let mut share = BodyMemoryShare::new(memory.clone(), Arc::default());
        assert_eq!(share.grow_to(40, 100), Ok(()));
        assert_eq!(share.grow_response_to(30, 100), Ok(()));
        assert_eq!(share.grow_response_to(20, 100), Ok(()));
        assert_eq!(used(), 70);
        assert_eq!(share.grow_response_to(61, 100), Err(NoBodyMemory::Full));
        share.release_response();
        assert_eq!(used(), 40);
        assert_eq!(share.grow_response_to(60, 100), Ok(()));
        share.release_request();
        assert_eq!(used(), 60);
        assert_eq!(share.grow_response_to(100, 100), Ok(()));
        drop(share);
        assert_eq!(used(), 0);
        assert_eq!(BodyMemoryShare::default().grow_response_to(1, 0), Ok(()));
    }

    #[test]
    fn the_bodies_of_one_key_leave_half_to_others() {
        let memory = Arc::new(BodyMemory::default());
        let key = Arc::new(OwnerShare::default());
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
        assert_eq!(key.body_bytes.load(Ordering::Acquire), 0);
        assert_eq!(memory.used.load(Ordering::Acquire), 0);
    }
}

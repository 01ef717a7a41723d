//! How much memory the bodies of all requests take together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that the bodies of all requests take.
#[derive(Debug, Default)]
pub struct BodyMemory {
    used: AtomicUsize,
}

/// The memory of one body, counted until this is dropped.
#[derive(Debug, Default)]
pub struct BodyMemoryShare {
    memory: Option<Arc<BodyMemory>>,
    bytes: usize,
}

impl BodyMemoryShare {
    pub(super) const fn new(memory: Arc<BodyMemory>) -> BodyMemoryShare {
        BodyMemoryShare {
            memory: Some(memory),
            bytes: 0,
        }
    }

    /// Counts a body of this size; `false`: all bodies together would take more than `limit`.
    pub fn grow_to(&mut self, bytes: usize, limit: usize) -> bool {
        let (Some(memory), Some(more)) = (&self.memory, bytes.checked_sub(self.bytes)) else {
            return true;
        };
        let within = |used: usize| used.checked_add(more).filter(|used| *used <= limit);
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        let counted = memory.used.fetch_update(set, fetch, within).is_ok();
        if counted {
            self.bytes = bytes;
        }
        counted
    }
}

impl Drop for BodyMemoryShare {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.used.fetch_sub(self.bytes, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_one_limit_and_give_back_what_they_took() {
        let memory = Arc::new(BodyMemory::default());
        let mut first = BodyMemoryShare::new(memory.clone());
        let mut second = BodyMemoryShare::new(memory.clone());
        assert!(first.grow_to(60, 100) && first.grow_to(40, 100) && second.grow_to(40, 100));
        assert!(!second.grow_to(41, 100) && !first.grow_to(usize::MAX, 100));
        drop(first);
        assert!(second.grow_to(100, 100));
        drop(second);
        assert_eq!(memory.used.load(Ordering::Acquire), 0);
    }
}

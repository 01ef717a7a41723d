//! The memory of captures: of all in a process together, and what one account may have of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The part of the memory of all captures that those of one account may have.
const ACCOUNT_PART: usize = 4;

/// How many bytes captures may have together.
#[derive(Debug)]
pub struct CaptureMemory {
    used: AtomicUsize,
    limit: usize,
    /// The memory that this one is a part of.
    of_all: Option<Arc<CaptureMemory>>,
}

impl CaptureMemory {
    pub(super) const fn new(limit: usize) -> CaptureMemory {
        CaptureMemory {
            used: AtomicUsize::new(0),
            limit,
            of_all: None,
        }
    }

    /// What one account may have of this memory.
    pub(super) fn of_account(self: &Arc<CaptureMemory>) -> CaptureMemory {
        CaptureMemory {
            of_all: Some(self.clone()),
            ..CaptureMemory::new(self.limit / ACCOUNT_PART)
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Tells whether an account could not have its part of what is left.
    pub(super) fn is_scarce(&self) -> bool {
        self.used() > self.limit - self.limit / ACCOUNT_PART
    }

    fn take(&self, wanted: usize) -> usize {
        let limit = self.limit;
        let grown = |used: usize| Some(used.saturating_add(wanted).min(limit.max(used)));
        let before = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, grown);
        let before = before.unwrap_or(limit);
        let own = wanted.min(limit.saturating_sub(before));
        let taken = self.of_all.as_ref().map_or(own, |all| all.take(own));
        self.used.fetch_sub(own - taken, Ordering::AcqRel);
        taken
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(all) = &self.of_all {
            all.give_back(bytes);
        }
    }
}

/// What one side of a request takes of it, or a timeline, until this is dropped.
#[derive(Debug)]
pub struct CaptureShare {
    memory: Arc<CaptureMemory>,
    bytes: usize,
}

impl CaptureShare {
    pub(super) const fn new(memory: Arc<CaptureMemory>) -> CaptureShare {
        CaptureShare { memory, bytes: 0 }
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes room for so many bytes more, or for as many as there is room for; tells for how many.
    pub fn take(&mut self, wanted: usize) -> usize {
        let taken = self.memory.take(wanted);
        self.bytes += taken;
        taken
    }

    /// Gives back all but so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let rest = self.bytes.saturating_sub(bytes);
        self.memory.give_back(rest);
        self.bytes -= rest;
    }
}

impl Drop for CaptureShare {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_captures_together_take_no_more_than_they_may() {
        let memory = Arc::new(CaptureMemory::new(100));
        let (mut one, mut other) = (
            CaptureShare::new(memory.clone()),
            CaptureShare::new(memory.clone()),
        );
        assert_eq!((one.take(60), other.take(60), one.take(1)), (60, 40, 0));
        one.shrink_to(50);
        assert_eq!(other.take(60), 10);
        drop(one);
        assert_eq!(other.take(60), 50);
        drop(other);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn one_account_leaves_the_most_of_it_to_others() {
        let memory = Arc::new(CaptureMemory::new(100));
        let share = || CaptureShare::new(Arc::new(memory.of_account()));
        let mut shares = [share(), share(), share(), share(), share()];
        let taken = shares.each_mut().map(|share| share.take(60));
        assert_eq!(taken, [25, 25, 25, 25, 0]);
        assert!(memory.is_scarce());
        let [first, .., last] = &mut shares;
        first.shrink_to(5);
        assert_eq!((last.take(60), memory.used()), (20, 100));
        assert_eq!(last.memory.used(), 20);
    }
}

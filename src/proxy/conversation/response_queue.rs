//! What waits to be written to the database: keys have their turns, and one key leaves room to others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::runtime::IdOrigin;
use crate::store::{StoredResponse, mark_bytes};

/// How many bytes may be queued for writing, of all keys and of one; beyond that they are only in memory.
const QUEUE_BYTES: usize = 64 << 20;
const QUEUE_BYTES_PER_KEY: usize = QUEUE_BYTES / 2;

/// The same for the number of jobs.
pub(in crate::proxy) const QUEUE_LENGTH: usize = 4096;
const QUEUE_LENGTH_PER_KEY: usize = QUEUE_LENGTH / 2;

/// What the writer does for a key, in order.
pub(in crate::proxy) struct QueuedJob {
    pub(in crate::proxy) owner: String,
    pub(in crate::proxy) job: StoreJob,
}

pub(in crate::proxy) enum StoreJob {
    Store {
        id: String,
        reply: StoredResponse,
    },
    /// The key was given these ids, each of which is here once.
    Mark {
        ids: Vec<String>,
        origin: IdOrigin,
    },
    /// In turn with the others, so that nothing is written after it was deleted.
    Delete {
        id: String,
        done: oneshot::Sender<bool>,
    },
}

impl StoreJob {
    /// How many bytes it holds.
    pub(in crate::proxy) fn size(&self) -> usize {
        match self {
            StoreJob::Store { reply, .. } => reply.bytes(),
            StoreJob::Mark { ids, .. } => {
                mark_bytes(ids.len()) + ids.iter().map(String::len).sum::<usize>()
            }
            StoreJob::Delete { .. } => 0,
        }
    }
}

/// How much is queued for writing.
#[derive(Default)]
pub(in crate::proxy) struct QueueShares(Mutex<HashMap<String, QueueShare>>);

#[derive(Clone, Copy, Default)]
struct QueueShare {
    bytes: usize,
    jobs: usize,
}

impl QueueShares {
    /// Adds a job of a key, unless that would be too much.
    pub(in crate::proxy) fn add(&self, owner: &str, size: usize) -> bool {
        let mut by_key = self.by_key();
        let bytes: usize = by_key.values().map(|share| share.bytes).sum();
        let jobs: usize = by_key.values().map(|share| share.jobs).sum();
        let of_key = by_key.get(owner).copied().unwrap_or_default();
        let is_full = bytes + size > QUEUE_BYTES || jobs >= QUEUE_LENGTH;
        let has_share =
            of_key.bytes + size > QUEUE_BYTES_PER_KEY || of_key.jobs >= QUEUE_LENGTH_PER_KEY;
        if is_full || has_share {
            return false;
        }
        let share = QueueShare {
            bytes: of_key.bytes + size,
            jobs: of_key.jobs + 1,
        };
        by_key.insert(owner.to_owned(), share);
        true
    }

    pub(in crate::proxy) fn remove(&self, owner: &str, size: usize) {
        let mut by_key = self.by_key();
        if let Some(share) = by_key.get_mut(owner) {
            share.bytes = share.bytes.saturating_sub(size);
            share.jobs = share.jobs.saturating_sub(1);
            if share.jobs == 0 {
                by_key.remove(owner);
            }
        }
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<String, QueueShare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The jobs by key, whose keys take turns: whoever has much to write makes nobody else wait.
#[derive(Default)]
pub(in crate::proxy) struct JobQueue {
    by_key: HashMap<String, VecDeque<StoreJob>>,
    /// The keys that have jobs, the next one first.
    turns: VecDeque<String>,
}

impl JobQueue {
    pub(in crate::proxy) fn push(&mut self, QueuedJob { owner, job }: QueuedJob) {
        let jobs = self.by_key.entry(owner.clone()).or_default();
        if jobs.is_empty() {
            self.turns.push_back(owner);
        }
        jobs.push_back(job);
    }

    pub(in crate::proxy) fn pop(&mut self) -> Option<QueuedJob> {
        let owner = self.turns.pop_front()?;
        let jobs = self.by_key.get_mut(&owner)?;
        let job = jobs.pop_front()?;
        match jobs.is_empty() {
            true => drop(self.by_key.remove(&owner)),
            false => self.turns.push_back(owner.clone()),
        }
        Some(QueuedJob { owner, job })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leaves_half_of_the_queue_to_others() {
        let queued = QueueShares::default();
        assert!(queued.add("a", QUEUE_BYTES_PER_KEY));
        assert!(!queued.add("a", 1));
        assert!(queued.add("b", QUEUE_BYTES_PER_KEY - 1));
        assert!(!queued.add("c", 2));
        queued.remove("a", QUEUE_BYTES_PER_KEY);
        assert!(queued.add("c", 2) && queued.by_key().len() == 2);
    }

    #[test]
    fn a_key_leaves_half_of_the_jobs_to_others() {
        let queued = QueueShares::default();
        let added = (0..QUEUE_LENGTH).filter(|_| queued.add("a", 1)).count();
        assert_eq!(added, QUEUE_LENGTH_PER_KEY);
        assert!(queued.add("b", 1));
        queued.remove("a", 1);
        assert!(queued.add("a", 1) && !queued.add("a", 1));
    }

    #[test]
    fn keys_take_turns_and_the_jobs_of_one_stay_in_order() {
        let mut queue = JobQueue::default();
        for (owner, id) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "4"), ("c", "5")] {
            let job = StoreJob::Mark {
                ids: vec![id.to_owned()],
                origin: IdOrigin::from_stored(&[0; 16]).expect("an origin"),
            };
            let owner = owner.to_owned();
            queue.push(QueuedJob { owner, job });
        }
        let ids = std::iter::from_fn(|| match queue.pop()?.job {
            StoreJob::Mark { ids, .. } => Some(ids.concat()),
            _ => None,
        });
        assert_eq!(ids.collect::<Vec<_>>(), ["1", "4", "5", "2", "3"]);
        assert!(queue.by_key.is_empty() && queue.turns.is_empty());
    }
}

//! Tasks in memory, for gateways without a store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

use super::tasks::{News, Status, TOMBSTONE_FACTOR, Task, milliseconds_now};

/// Of all results together; beyond it the oldest expire early. One alone may be larger.
const RESULTS: usize = 256 << 20;

/// By their ids, which sort by age.
#[derive(Default)]
pub struct Remembered(Mutex<BTreeMap<String, Kept>>);

struct Kept {
    task: Task,
    /// When whoever works on it was last heard of.
    touched: i64,
    forget: i64,
}

impl Remembered {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        // Nothing can panic while it is held; if it did, tasks are still tasks.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn create(&self, key: &str, model: &str, request: Bytes, ttl: i64) -> Task {
        let now = milliseconds_now();
        let task = Task {
            id: format!("task_{}", Uuid::now_v7().simple()),
            key: key.to_owned(),
            model: model.to_owned(),
            status: Status::Queued,
            request,
            result: None,
            error: None,
            created: now,
            expires: now.saturating_add(ttl),
        };
        let kept = Kept {
            task: task.clone(),
            touched: now,
            forget: now.saturating_add(ttl.saturating_mul(TOMBSTONE_FACTOR)),
        };
        self.tasks().insert(task.id.clone(), kept);
        task
    }

    pub(super) fn get(&self, key: &str, id: &str) -> Option<Task> {
        let tasks = self.tasks();
        let found = tasks.get(id).filter(|kept| kept.task.key == key);
        found.map(|kept| kept.task.clone())
    }

    pub(super) fn list(&self, key: &str, most: usize) -> Vec<Task> {
        let tasks = self.tasks();
        let own = tasks.values().rev().filter(|kept| kept.task.key == key);
        own.take(most).map(|kept| kept.task.clone()).collect()
    }

    pub(super) fn waiting(&self) -> u64 {
        let tasks = self.tasks();
        let waits = |kept: &&Kept| kept.task.status == Status::Queued;
        tasks.values().filter(waits).count() as u64
    }

    pub(super) fn claim(&self, unheard_since: i64) -> Option<Task> {
        let now = milliseconds_now();
        let mut tasks = self.tasks();
        let mut waiting = tasks.values_mut().filter(|kept| {
            let is_free = match kept.task.status {
                Status::Queued => true,
                Status::Running => kept.touched < unheard_since,
                _ => false,
            };
            is_free && kept.task.expires > now
        });
        let kept = waiting.next()?;
        kept.task.status = Status::Running;
        kept.touched = now;
        Some(kept.task.clone())
    }

    pub(super) fn update(&self, id: &str, news: News) -> bool {
        let now = milliseconds_now();
        let mut tasks = self.tasks();
        let running =
            |kept: &&mut Kept| kept.task.status == Status::Running && kept.task.expires > now;
        let Some(kept) = tasks.get_mut(id).filter(running) else {
            return false;
        };
        kept.touched = now;
        match news {
            News::Alive => return true,
            News::Succeeded(result) => {
                kept.task.status = Status::Succeeded;
                kept.task.result = Some(result);
            }
            News::Failed(error) => {
                kept.task.status = Status::Failed;
                kept.task.error = Some(error);
            }
        }
        kept.task.request = Bytes::new();
        make_room(&mut tasks, id, now);
        true
    }

    pub(super) fn cancel(&self, key: &str, id: &str) -> bool {
        let mut tasks = self.tasks();
        let open = |kept: &&mut Kept| {
            kept.task.key == key && matches!(kept.task.status, Status::Queued | Status::Running)
        };
        let Some(kept) = tasks.get_mut(id).filter(open) else {
            return false;
        };
        kept.task.status = Status::Cancelled;
        kept.task.request = Bytes::new();
        true
    }

    /// Results first, then all of it.
    pub(super) fn expire(&self) {
        let now = milliseconds_now();
        self.tasks().retain(|_, kept| {
            if kept.task.expires <= now {
                kept.task.request = Bytes::new();
                kept.task.result = None;
            }
            kept.forget > now
        });
    }
}

/// Whose result is too much with this one has expired.
fn make_room(tasks: &mut BTreeMap<String, Kept>, newest: &str, now: i64) {
    let size = |kept: &Kept| kept.task.result.as_ref().map_or(0, Bytes::len);
    let mut sum: usize = tasks.values().map(size).sum();
    for kept in tasks.values_mut() {
        if sum <= RESULTS {
            return;
        }
        if kept.task.id != newest && kept.task.result.is_some() {
            sum -= size(kept);
            kept.task.result = None;
            kept.task.expires = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: i64 = 60_000;

    fn create(tasks: &Remembered, key: &str, ttl: i64) -> String {
        tasks.create(key, "art", Bytes::from_static(b"x"), ttl).id
    }

    #[test]
    fn the_oldest_is_claimed_first_and_once() {
        let tasks = Remembered::default();
        let (first, second) = (create(&tasks, "a", LONG), create(&tasks, "b", LONG));
        let claimed = |tasks: &Remembered| tasks.claim(0).map(|task| task.id);
        assert_eq!(tasks.waiting(), 2);
        assert_eq!(claimed(&tasks), Some(first.clone()));
        assert_eq!(claimed(&tasks), Some(second.clone()));
        assert_eq!((claimed(&tasks), tasks.waiting()), (None, 0));
        // Whoever works on them has not been heard of since.
        assert_eq!(
            tasks.claim(i64::MAX).map(|task| task.id),
            Some(first.clone())
        );
        assert!(tasks.update(&first, News::Succeeded(Bytes::from_static(b"{}"))));
        assert!(!tasks.update(&first, News::Alive));
        assert!(tasks.cancel("b", &second) && !tasks.update(&second, News::Alive));
        assert!(!tasks.cancel("b", &second) && !tasks.cancel("a", &first));
    }

    #[test]
    fn the_oldest_results_make_room_for_the_newest() {
        let tasks = Remembered::default();
        let ids: Vec<_> = (0..3).map(|_| create(&tasks, "a", LONG)).collect();
        // One piece of memory for all of them.
        let result = Bytes::from(vec![0; RESULTS / 2]);
        for _ in &ids {
            let task = tasks.claim(0).expect("one that waits");
            assert!(tasks.update(&task.id, News::Succeeded(result.clone())));
        }
        let now = milliseconds_now();
        let shown: Vec<_> = ids.iter().filter_map(|id| tasks.get("a", id)).collect();
        assert!(shown[0].result.is_none() && shown[0].expires <= now);
        for task in &shown[1..] {
            assert!(task.result.is_some() && task.expires > now);
        }
    }

    #[test]
    fn a_key_sees_its_own_only() {
        let tasks = Remembered::default();
        let id = create(&tasks, "a", LONG);
        let later = create(&tasks, "a", LONG);
        assert!(tasks.get("a", &id).is_some() && tasks.get("b", &id).is_none());
        assert!(!tasks.cancel("b", &id) && tasks.list("b", 9).is_empty());
        let listed: Vec<_> = tasks.list("a", 9).into_iter().map(|task| task.id).collect();
        assert_eq!(listed, [later, id]);
    }

    #[test]
    fn what_has_expired_is_not_claimed_and_loses_its_content() {
        let tasks = Remembered::default();
        let (gone, expired) = (create(&tasks, "a", -2), create(&tasks, "a", 0));
        tasks.tasks().get_mut(&expired).expect("it").forget = i64::MAX;
        assert_eq!(tasks.claim(i64::MAX), None);
        tasks.expire();
        assert!(tasks.get("a", &gone).is_none());
        assert_eq!(
            tasks.get("a", &expired).map(|task| task.request),
            Some(Bytes::new())
        );
    }
}

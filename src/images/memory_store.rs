//! Image tasks in memory, for gateways without a database.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

use super::task::{
    HeldBytes, ImageTask, ImageTaskStatus, QueuedTasks, TOMBSTONE_FACTOR, TaskProgress,
    milliseconds_now,
};

/// The limit of all results together in bytes: beyond it the oldest of the key that holds most expire
/// early. One alone may be larger.
const MAX_RESULT_BYTES: usize = 256 << 20;

/// Image tasks in memory, by their ids, which sort by age.
#[derive(Default)]
pub struct MemoryTaskStore(Mutex<BTreeMap<String, TaskEntry>>);

struct TaskEntry {
    task: ImageTask,
    /// The number of its last claim, from 1 on; later claims have higher ones.
    claim: u64,
    /// When its worker last sent a heartbeat.
    last_heartbeat: i64,
    /// When the entry is deleted.
    delete_at: i64,
}

impl TaskEntry {
    fn result_size(&self) -> usize {
        self.task.result.as_ref().map_or(0, Bytes::len)
    }
}

impl MemoryTaskStore {
    fn tasks(&self) -> MutexGuard<'_, BTreeMap<String, TaskEntry>> {
        // Nothing panics while it is held; if something did, the tasks would still be whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn create(&self, key: &str, model: &str, request: Bytes, ttl: i64) -> ImageTask {
        let now = milliseconds_now();
        let task = ImageTask {
            id: format!("task_{}", Uuid::now_v7().simple()),
            key: key.to_owned(),
            model: model.to_owned(),
            status: ImageTaskStatus::Queued,
            request,
            result: None,
            error: None,
            created: now,
            expires: now.saturating_add(ttl),
        };
        let entry = TaskEntry {
            task: task.clone(),
            claim: 0,
            last_heartbeat: now,
            delete_at: now.saturating_add(ttl.saturating_mul(TOMBSTONE_FACTOR)),
        };
        self.tasks().insert(task.id.clone(), entry);
        task
    }

    pub(super) fn get(&self, key: &str, id: &str) -> Option<ImageTask> {
        let tasks = self.tasks();
        let found = tasks.get(id).filter(|entry| entry.task.key == key);
        found.map(|entry| entry.task.clone())
    }

    pub(super) fn list(&self, key: &str, limit: usize) -> Vec<ImageTask> {
        let tasks = self.tasks();
        let own = tasks.values().rev().filter(|entry| entry.task.key == key);
        own.take(limit).map(|entry| entry.task.clone()).collect()
    }

    pub(super) fn held(&self, key: &str) -> HeldBytes {
        let tasks = self.tasks();
        let own = tasks.values().filter(|entry| entry.task.key == key);
        own.fold(HeldBytes::default(), |held, entry| HeldBytes {
            open: held.open + entry.task.request.len(),
            results: held.results + entry.result_size(),
        })
    }

    /// Expires the oldest results of the key until the others take no more than `left`, except for one.
    pub(super) fn trim_results(&self, key: &str, except: &str, left: usize) {
        let now = milliseconds_now();
        let mut tasks = self.tasks();
        let own = tasks.values_mut().filter(|entry| entry.task.key == key);
        let mut sum = 0;
        for entry in own.rev().filter(|entry| entry.task.id != except) {
            sum += entry.result_size();
            if sum > left && entry.task.result.is_some() {
                entry.task.result = None;
                entry.task.expires = now;
            }
        }
    }

    pub(super) fn queued(&self, key: &str) -> QueuedTasks {
        let tasks = self.tasks();
        let is_queued = |entry: &&TaskEntry| entry.task.status == ImageTaskStatus::Queued;
        let queued = tasks.values().filter(is_queued);
        let of_key = queued.clone().filter(|entry| entry.task.key == key);
        QueuedTasks {
            of_key: of_key.count() as u64,
            all: queued.count() as u64,
        }
    }

    pub(super) fn claim(&self, no_heartbeat_since: i64, busy: &[String]) -> Option<ImageTask> {
        let now = milliseconds_now();
        let mut tasks = self.tasks();
        // How many tasks of each key run, and when the last one began.
        let mut begun: HashMap<&str, (usize, u64)> = HashMap::new();
        for entry in tasks.values().filter(|entry| entry.claim > 0) {
            let (running, last) = begun.entry(&entry.task.key).or_default();
            *running += usize::from(entry.task.status == ImageTaskStatus::Running);
            *last = entry.claim.max(*last);
        }
        let claim = begun.values().map(|(_, last)| *last).max();
        let claimable = tasks.values().filter(|entry| {
            let is_free = match entry.task.status {
                ImageTaskStatus::Queued => true,
                ImageTaskStatus::Running => entry.last_heartbeat < no_heartbeat_since,
                _ => false,
            };
            is_free && entry.task.expires > now && !busy.contains(&entry.task.key)
        });
        // Of several tasks of one key, the first is the oldest.
        let next = claimable.min_by_key(|entry| begun.get(&*entry.task.key).copied());
        let id = next?.task.id.clone();
        let entry = tasks.get_mut(&id)?;
        entry.task.status = ImageTaskStatus::Running;
        entry.last_heartbeat = now;
        entry.claim = claim.unwrap_or_default() + 1;
        Some(entry.task.clone())
    }

    pub(super) fn update(&self, id: &str, progress: TaskProgress) -> bool {
        let now = milliseconds_now();
        let mut tasks = self.tasks();
        let running = |entry: &&mut TaskEntry| {
            entry.task.status == ImageTaskStatus::Running && entry.task.expires > now
        };
        let Some(entry) = tasks.get_mut(id).filter(running) else {
            return false;
        };
        entry.last_heartbeat = now;
        match progress {
            TaskProgress::Heartbeat => return true,
            TaskProgress::Queued => {
                entry.task.status = ImageTaskStatus::Queued;
                return true;
            }
            TaskProgress::Succeeded(result) => {
                entry.task.status = ImageTaskStatus::Succeeded;
                entry.task.result = Some(result);
            }
            TaskProgress::Failed(error) => {
                entry.task.status = ImageTaskStatus::Failed;
                entry.task.error = Some(error);
            }
        }
        entry.task.request = Bytes::new();
        expire_oldest_results(&mut tasks, id, now);
        true
    }

    pub(super) fn cancel(&self, key: &str, id: &str) -> bool {
        let mut tasks = self.tasks();
        let open = |entry: &&mut TaskEntry| {
            entry.task.key == key
                && matches!(
                    entry.task.status,
                    ImageTaskStatus::Queued | ImageTaskStatus::Running
                )
        };
        let Some(entry) = tasks.get_mut(id).filter(open) else {
            return false;
        };
        entry.task.status = ImageTaskStatus::Cancelled;
        entry.task.request = Bytes::new();
        true
    }

    /// Deletes the content of expired tasks, and the tasks themselves some time later.
    pub(super) fn expire(&self) {
        let now = milliseconds_now();
        self.tasks().retain(|_, entry| {
            if entry.task.expires <= now {
                entry.task.request = Bytes::new();
                entry.task.result = None;
            }
            entry.delete_at > now
        });
    }
}

/// Expires the oldest results of the key that holds most until all of them fit, except for the newest.
fn expire_oldest_results(tasks: &mut BTreeMap<String, TaskEntry>, newest: &str, now: i64) {
    let mut sum: usize = tasks.values().map(TaskEntry::result_size).sum();
    while sum > MAX_RESULT_BYTES {
        let mut held: HashMap<&str, usize> = HashMap::new();
        for entry in tasks.values().filter(|entry| entry.task.id != newest) {
            *held.entry(&entry.task.key).or_default() += entry.result_size();
        }
        let largest = held.into_iter().max_by_key(|(_, size)| *size);
        let Some(key) = largest.map(|(key, _)| key.to_owned()) else {
            return;
        };
        let mut entries = tasks.values_mut();
        let oldest = entries.find(|entry| {
            entry.task.key == key && entry.task.id != newest && entry.task.result.is_some()
        });
        let Some(oldest) = oldest else { return };
        sum -= oldest.result_size();
        oldest.task.result = None;
        oldest.task.expires = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: i64 = 60_000;

    fn create(tasks: &MemoryTaskStore, key: &str, ttl: i64) -> String {
        tasks.create(key, "art", Bytes::from_static(b"x"), ttl).id
    }

    #[test]
    fn the_oldest_task_is_claimed_first_and_once() {
        let tasks = MemoryTaskStore::default();
        let (first, second) = (create(&tasks, "a", LONG), create(&tasks, "b", LONG));
        let claimed = |tasks: &MemoryTaskStore| tasks.claim(0, &[]).map(|task| task.id);
        let queued = |all, of_key| QueuedTasks { all, of_key };
        assert_eq!(tasks.queued("a"), queued(2, 1));
        assert_eq!(claimed(&tasks), Some(first.clone()));
        assert_eq!(claimed(&tasks), Some(second.clone()));
        assert_eq!((claimed(&tasks), tasks.queued("a")), (None, queued(0, 0)));
        // Their workers have sent no heartbeat since.
        assert_eq!(
            tasks.claim(i64::MAX, &[]).map(|task| task.id),
            Some(first.clone())
        );
        assert!(tasks.update(&first, TaskProgress::Succeeded(Bytes::from_static(b"{}"))));
        assert!(!tasks.update(&first, TaskProgress::Heartbeat));
        assert!(tasks.cancel("b", &second) && !tasks.update(&second, TaskProgress::Heartbeat));
        assert!(!tasks.cancel("b", &second) && !tasks.cancel("a", &first));
    }

    #[test]
    fn keys_take_turns_and_a_busy_one_waits() {
        let tasks = MemoryTaskStore::default();
        let many: Vec<_> = (0..3).map(|_| create(&tasks, "a", LONG)).collect();
        let one = create(&tasks, "b", LONG);
        let claim = |busy: &[String]| tasks.claim(0, busy).map(|task| task.id);
        assert_eq!(claim(&[]), Some(many[0].clone()));
        assert_eq!(claim(&["b".to_owned()]), Some(many[1].clone()));
        assert_eq!(claim(&[]), Some(one.clone()));
        assert_eq!(claim(&["a".to_owned()]), None);
        // It waits again.
        assert!(tasks.update(&many[1], TaskProgress::Queued));
        assert_eq!(claim(&[]), Some(many[1].clone()));
        for id in &many[..2] {
            assert!(tasks.update(id, TaskProgress::Failed(String::new())));
        }
        // Nobody's runs, and the other had its turn longer ago.
        let (id, _) = (create(&tasks, "b", LONG), tasks.cancel("b", &one));
        assert_eq!(claim(&[]), Some(id));
        assert_eq!(claim(&[]), Some(many[2].clone()));
    }

    #[test]
    fn the_oldest_results_of_a_key_are_trimmed() {
        let tasks = MemoryTaskStore::default();
        let ids: Vec<_> = (0..4).map(|_| create(&tasks, "a", LONG)).collect();
        create(&tasks, "b", LONG);
        for _ in &ids {
            let task = tasks.claim(0, &["b".to_owned()]).expect("a queued task");
            let result = Bytes::from(vec![0; 100]);
            assert!(tasks.update(&task.id, TaskProgress::Succeeded(result)));
        }
        let held = |open, results| HeldBytes { open, results };
        assert_eq!(tasks.held("a"), held(0, 400));
        assert_eq!(tasks.held("b"), held(1, 0));
        tasks.trim_results("a", "", 350);
        assert_eq!(tasks.held("a"), held(0, 300));
        tasks.trim_results("a", &ids[3], 100);
        assert_eq!(tasks.held("a"), held(0, 200));
        let has_result = |id: &String| tasks.get("a", id).is_some_and(|task| task.result.is_some());
        let left: Vec<bool> = ids.iter().map(has_result).collect();
        assert_eq!(left, [false, false, true, true]);
    }

    #[test]
    fn the_results_of_a_key_do_not_expire_for_those_of_another() {
        let tasks = MemoryTaskStore::default();
        let quiet = create(&tasks, "b", LONG);
        let loud: Vec<_> = (0..6).map(|_| create(&tasks, "a", LONG)).collect();
        let result = Bytes::from(vec![0; MAX_RESULT_BYTES / 4]);
        for _ in 0..=loud.len() {
            let task = tasks.claim(0, &[]).expect("a queued task");
            assert!(tasks.update(&task.id, TaskProgress::Succeeded(result.clone())));
        }
        let has_result = |key: &str, id: &str| {
            let task = tasks.get(key, id);
            task.is_some_and(|task| task.result.is_some())
        };
        assert!(has_result("b", &quiet));
        let left: Vec<bool> = loud.iter().map(|id| has_result("a", id)).collect();
        assert_eq!(left, [false, false, false, true, true, true]);
    }

    #[test]
    fn the_oldest_results_expire_when_there_are_too_many() {
        let tasks = MemoryTaskStore::default();
        let ids: Vec<_> = (0..3).map(|_| create(&tasks, "a", LONG)).collect();
        // All of them share one buffer.
        let result = Bytes::from(vec![0; MAX_RESULT_BYTES / 2]);
        for _ in &ids {
            let task = tasks.claim(0, &[]).expect("a queued task");
            assert!(tasks.update(&task.id, TaskProgress::Succeeded(result.clone())));
        }
        let now = milliseconds_now();
        let found: Vec<_> = ids.iter().filter_map(|id| tasks.get("a", id)).collect();
        assert!(found[0].result.is_none() && found[0].expires <= now);
        for task in &found[1..] {
            assert!(task.result.is_some() && task.expires > now);
        }
    }

    #[test]
    fn a_key_sees_its_own_tasks_only() {
        let tasks = MemoryTaskStore::default();
        let id = create(&tasks, "a", LONG);
        let later = create(&tasks, "a", LONG);
        assert!(tasks.get("a", &id).is_some() && tasks.get("b", &id).is_none());
        assert!(!tasks.cancel("b", &id) && tasks.list("b", 9).is_empty());
        let listed: Vec<_> = tasks.list("a", 9).into_iter().map(|task| task.id).collect();
        assert_eq!(listed, [later, id]);
    }

    #[test]
    fn an_expired_task_is_not_claimed_and_loses_its_content() {
        let tasks = MemoryTaskStore::default();
        let (gone, expired) = (create(&tasks, "a", -2), create(&tasks, "a", 0));
        tasks.tasks().get_mut(&expired).expect("it").delete_at = i64::MAX;
        assert_eq!(tasks.claim(i64::MAX, &[]), None);
        tasks.expire();
        assert!(tasks.get("a", &gone).is_none());
        assert_eq!(
            tasks.get("a", &expired).map(|task| task.request),
            Some(Bytes::new())
        );
    }
}

//! The store of image tasks: memory, or the database.

use bytes::Bytes;

use super::database_store;
use super::memory_store::MemoryTaskStore;
use super::task::{ImageTask, QueuedTasks, TaskProgress};
use crate::model::ApiError;
use crate::store::Store;

/// Image tasks, in memory or in the database.
pub enum TaskStore {
    /// Tasks end with the process.
    Memory(MemoryTaskStore),
    /// Tasks outlive the process, and any process may work on them.
    Database(Store),
}

impl TaskStore {
    /// Makes an empty store in memory.
    pub fn in_memory() -> TaskStore {
        TaskStore::Memory(MemoryTaskStore::default())
    }

    /// Creates a queued task that expires after `ttl` milliseconds.
    pub(super) async fn create(
        &self,
        key: &str,
        model: &str,
        request: Bytes,
        ttl: i64,
    ) -> Result<ImageTask, ApiError> {
        match self {
            TaskStore::Memory(tasks) => Ok(tasks.create(key, model, request, ttl)),
            TaskStore::Database(store) => {
                database_store::create(store, key, model, request, ttl).await
            }
        }
    }

    /// Returns a task of a key.
    pub(super) async fn get(&self, key: &str, id: &str) -> Result<Option<ImageTask>, ApiError> {
        match self {
            TaskStore::Memory(tasks) => Ok(tasks.get(key, id)),
            TaskStore::Database(store) => database_store::get(store, key, id).await,
        }
    }

    /// Returns the tasks of a key, the latest first.
    pub(super) async fn list(&self, key: &str, limit: usize) -> Result<Vec<ImageTask>, ApiError> {
        match self {
            TaskStore::Memory(tasks) => Ok(tasks.list(key, limit)),
            TaskStore::Database(store) => database_store::list(store, key, limit).await,
        }
    }

    /// Counts the queued tasks.
    pub(super) async fn queued(&self, key: &str) -> Result<QueuedTasks, ApiError> {
        match self {
            TaskStore::Memory(tasks) => Ok(tasks.queued(key)),
            TaskStore::Database(store) => database_store::queued(store, key).await,
        }
    }

    /// Claims a task that is queued, or whose worker has sent no heartbeat since then: the oldest of
    /// the key with the fewest running tasks, except for keys that are busy.
    pub(super) async fn claim(
        &self,
        no_heartbeat_since: i64,
        busy: &[String],
    ) -> Result<Option<ImageTask>, ApiError> {
        match self {
            TaskStore::Memory(tasks) => Ok(tasks.claim(no_heartbeat_since, busy)),
            TaskStore::Database(store) => {
                database_store::claim(store, no_heartbeat_since, busy).await
            }
        }
    }

    /// Records a report on a running task. `false`: it runs no more, and the work can stop.
    pub(super) async fn update(&self, id: &str, progress: TaskProgress) -> Result<bool, ApiError> {
        match self {
            TaskStore::Memory(tasks) => Ok(tasks.update(id, progress)),
            TaskStore::Database(store) => database_store::update(store, id, progress).await,
        }
    }

    /// Cancels a task. `false`: the key has no such task, or it has ended already.
    pub(super) async fn cancel(&self, key: &str, id: &str) -> Result<bool, ApiError> {
        match self {
            TaskStore::Memory(tasks) => Ok(tasks.cancel(key, id)),
            TaskStore::Database(store) => database_store::cancel(store, key, id).await,
        }
    }

    /// Deletes the results of tasks that have expired, and later the tasks themselves.
    pub(super) async fn expire(&self) -> Result<(), ApiError> {
        match self {
            TaskStore::Memory(tasks) => {
                tasks.expire();
                Ok(())
            }
            TaskStore::Database(store) => database_store::expire(store).await,
        }
    }
}

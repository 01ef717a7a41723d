//! The store of image tasks: memory, or the database.

use bytes::Bytes;

use super::database_store;
use super::memory_store::MemoryTaskStore;
use super::task::{HeldBytes, ImageTask, QueuedTasks, RETRY_AFTER, TaskProgress};
use crate::model::{ApiError, ApiErrorKind};
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

    /// Makes room for a request of the key, at the cost of its own oldest results. `Err`: its tasks that
    /// have not ended, and those of `created` bytes that are being created, take too much.
    pub(super) async fn make_room(
        &self,
        key: &str,
        needed: usize,
        (created, limit): (usize, usize),
    ) -> Result<(), ApiError> {
        let held = self.held(key).await?;
        let open = held.open + created;
        check_room(open, needed, limit)?;
        if open + needed + held.results <= limit {
            return Ok(());
        }
        self.trim_results(key, "", limit - open - needed).await
    }

    /// Deletes the oldest results of the key when all take too much, except for the newest, of `size` bytes.
    pub(super) async fn trim(
        &self,
        newest: &ImageTask,
        size: usize,
        limit: usize,
    ) -> Result<(), ApiError> {
        let held = self.held(&newest.key).await?;
        if held.open + held.results <= limit {
            return Ok(());
        }
        let left = limit.saturating_sub(held.open + size);
        self.trim_results(&newest.key, &newest.id, left).await
    }

    async fn held(&self, key: &str) -> Result<HeldBytes, ApiError> {
        match self {
            TaskStore::Memory(tasks) => Ok(tasks.held(key)),
            TaskStore::Database(store) => database_store::held(store, key).await,
        }
    }

    async fn trim_results(&self, key: &str, except: &str, left: usize) -> Result<(), ApiError> {
        match self {
            TaskStore::Memory(tasks) => {
                tasks.trim_results(key, except, left);
                Ok(())
            }
            TaskStore::Database(store) => {
                database_store::trim_results(store, key, except, left).await
            }
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

/// Refuses a request that does not fit beside those of the key that wait or run.
fn check_room(open: usize, needed: usize, limit: usize) -> Result<(), ApiError> {
    if needed > limit {
        let message = format!(
            "an image task of {needed} bytes is larger than {limit} bytes (images.tasks.max_bytes_per_key)"
        );
        return Err(ApiError::new(ApiErrorKind::TooLarge, message));
    }
    if open + needed <= limit {
        return Ok(());
    }
    let message = format!(
        "the image tasks of this API key that have not ended hold {open} bytes, and {needed} more are over the limit of \
         {limit} (images.tasks.max_bytes_per_key); wait until some have ended"
    );
    let mut api_error = ApiError::new(ApiErrorKind::RateLimited, message);
    api_error.retry_after = Some(RETRY_AFTER);
    Err(api_error)
}

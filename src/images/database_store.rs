//! Image tasks in the database: they outlive the process, and any process may work on them.

use bytes::Bytes;

use super::task::{
    EXPIRED, HeldBytes, ImageTask, ImageTaskStatus, QueuedTasks, RETRY_AFTER, TOMBSTONE_FACTOR,
    TaskProgress, milliseconds_now,
};
use crate::model::{ApiError, ApiErrorKind};
use crate::store::{self, Store, StoreError, TaskStatus, TaskUpdate};

impl From<store::StoredTask> for ImageTask {
    fn from(task: store::StoredTask) -> ImageTask {
        ImageTask {
            id: task.id,
            key: task.key,
            model: task.model,
            status: match task.status {
                TaskStatus::Queued => ImageTaskStatus::Queued,
                TaskStatus::Running => ImageTaskStatus::Running,
                TaskStatus::Done => ImageTaskStatus::Succeeded,
                TaskStatus::Failed => ImageTaskStatus::Failed,
                TaskStatus::Cancelled => ImageTaskStatus::Cancelled,
            },
            request: task.request.into(),
            result: task.result.map(Bytes::from),
            error: task.error,
            created: task.created,
            // The store deletes it later than it expires.
            expires: task.created + (task.expires - task.created) / TOMBSTONE_FACTOR,
        }
    }
}

/// The error for the client; the log has the details.
fn unavailable(_: StoreError) -> ApiError {
    ApiError::new(
        ApiErrorKind::Overloaded,
        "tasks cannot be looked up now; try again",
    )
}

pub(super) async fn create(
    store: &Store,
    key: &str,
    model: &str,
    request: Bytes,
    ttl: i64,
) -> Result<ImageTask, ApiError> {
    if !store.has_free_disk() {
        let message = "image tasks cannot be stored now: the disk of the gateway is nearly full";
        let mut api_error = ApiError::new(ApiErrorKind::Overloaded, message);
        api_error.retry_after = Some(RETRY_AFTER);
        return Err(api_error);
    }
    let delete_at = milliseconds_now().saturating_add(ttl.saturating_mul(TOMBSTONE_FACTOR));
    let creating = store.create_task(key, model, request.into(), delete_at);
    store
        .query(key, creating)
        .await
        .map(ImageTask::from)
        .map_err(unavailable)
}

pub(super) async fn get(store: &Store, key: &str, id: &str) -> Result<Option<ImageTask>, ApiError> {
    let found = store
        .query(key, store.task(key, id))
        .await
        .map_err(unavailable)?;
    Ok(found.map(ImageTask::from))
}

pub(super) async fn list(
    store: &Store,
    key: &str,
    limit: usize,
) -> Result<Vec<ImageTask>, ApiError> {
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let found = store
        .query(key, store.tasks(key, limit))
        .await
        .map_err(unavailable)?;
    Ok(found.into_iter().map(ImageTask::from).collect())
}

pub(super) async fn held(store: &Store, key: &str) -> Result<HeldBytes, ApiError> {
    let held = store.query(key, store.task_bytes(key)).await;
    let (open, results) = held.map_err(unavailable)?;
    let bytes = |count| usize::try_from(count).unwrap_or(usize::MAX);
    Ok(HeldBytes {
        open: bytes(open),
        results: bytes(results),
    })
}

pub(super) async fn trim_results(
    store: &Store,
    key: &str,
    except: &str,
    left: usize,
) -> Result<(), ApiError> {
    let trimming = store.trim_task_results(key, except, left as u64);
    store.query(key, trimming).await.map_err(unavailable)
}

pub(super) async fn queued(store: &Store, key: &str) -> Result<QueuedTasks, ApiError> {
    let queued = store.query(key, store.queued_tasks(key)).await;
    let (all, of_key) = queued.map_err(unavailable)?;
    Ok(QueuedTasks { all, of_key })
}

/// Claims a task; one that has expired meanwhile fails instead.
pub(super) async fn claim(
    store: &Store,
    no_heartbeat_since: i64,
    busy: &[String],
) -> Result<Option<ImageTask>, ApiError> {
    loop {
        let claiming = store.claim_task(no_heartbeat_since, busy);
        let claimed = store.query("", claiming).await;
        let Some(task) = claimed.map_err(unavailable)?.map(ImageTask::from) else {
            return Ok(None);
        };
        if task.expires > milliseconds_now() {
            return Ok(Some(task));
        }
        update(store, &task.id, TaskProgress::Failed(EXPIRED.to_owned())).await?;
    }
}

pub(super) async fn update(
    store: &Store,
    id: &str,
    progress: TaskProgress,
) -> Result<bool, ApiError> {
    let progress = match progress {
        TaskProgress::Heartbeat => TaskUpdate::Progress(0),
        TaskProgress::Queued => TaskUpdate::Queued,
        TaskProgress::Succeeded(result) => TaskUpdate::Done(result.into()),
        TaskProgress::Failed(error) => TaskUpdate::Failed(error),
    };
    // No request waits for this, and the report cannot be repeated.
    store.update_task(id, progress).await.map_err(unavailable)
}

pub(super) async fn cancel(store: &Store, key: &str, id: &str) -> Result<bool, ApiError> {
    store
        .query(key, store.cancel_task(key, id))
        .await
        .map_err(unavailable)
}

pub(super) async fn expire(store: &Store) -> Result<(), ApiError> {
    let deleted = store.query("", store.delete_expired_tasks()).await;
    deleted.map(|_| ()).map_err(unavailable)
}

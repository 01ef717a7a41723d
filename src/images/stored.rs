//! Tasks in the store: they outlive the process, and any process may work on them.

use bytes::Bytes;

use super::tasks::{EXPIRED, News, Status, TOMBSTONE_FACTOR, Task, milliseconds_now};
use crate::model::{ApiError, ApiErrorKind};
use crate::store::{self, Store, StoreError, TaskStatus, TaskUpdate};

impl From<store::StoredTask> for Task {
    fn from(task: store::StoredTask) -> Task {
        Task {
            id: task.id,
            key: task.key,
            model: task.model,
            status: match task.status {
                TaskStatus::Queued => Status::Queued,
                TaskStatus::Running => Status::Running,
                TaskStatus::Done => Status::Succeeded,
                TaskStatus::Failed => Status::Failed,
                TaskStatus::Cancelled => Status::Cancelled,
            },
            request: task.request.into(),
            result: task.result.map(Bytes::from),
            error: task.error,
            created: task.created,
            // The store forgets it later than it expires.
            expires: task.created + (task.expires - task.created) / TOMBSTONE_FACTOR,
        }
    }
}

/// What a client is told; the log has the rest.
fn away(_: StoreError) -> ApiError {
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
) -> Result<Task, ApiError> {
    let forget = milliseconds_now().saturating_add(ttl.saturating_mul(TOMBSTONE_FACTOR));
    let creating = store.create_task(key, model, request.into(), forget);
    store.query(creating).await.map(Task::from).map_err(away)
}

pub(super) async fn get(store: &Store, key: &str, id: &str) -> Result<Option<Task>, ApiError> {
    let found = store.query(store.task(key, id)).await.map_err(away)?;
    Ok(found.map(Task::from))
}

pub(super) async fn list(store: &Store, key: &str, most: usize) -> Result<Vec<Task>, ApiError> {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let found = store.query(store.tasks(key, most)).await.map_err(away)?;
    Ok(found.into_iter().map(Task::from).collect())
}

pub(super) async fn waiting(store: &Store) -> Result<u64, ApiError> {
    store.query(store.queued_tasks()).await.map_err(away)
}

/// What has expired meanwhile is not begun.
pub(super) async fn claim(store: &Store, unheard_since: i64) -> Result<Option<Task>, ApiError> {
    loop {
        let claimed = store.query(store.claim_task(unheard_since)).await;
        let Some(task) = claimed.map_err(away)?.map(Task::from) else {
            return Ok(None);
        };
        if task.expires > milliseconds_now() {
            return Ok(Some(task));
        }
        update(store, &task.id, News::Failed(EXPIRED.to_owned())).await?;
    }
}

pub(super) async fn update(store: &Store, id: &str, news: News) -> Result<bool, ApiError> {
    let news = match news {
        News::Alive => TaskUpdate::Progress(0),
        News::Succeeded(result) => TaskUpdate::Done(result.into()),
        News::Failed(error) => TaskUpdate::Failed(error),
    };
    // No request waits for this, and what it says cannot be said again.
    store.update_task(id, news).await.map_err(away)
}

pub(super) async fn cancel(store: &Store, key: &str, id: &str) -> Result<bool, ApiError> {
    store.query(store.cancel_task(key, id)).await.map_err(away)
}

pub(super) async fn expire(store: &Store) -> Result<(), ApiError> {
    let forgotten = store.query(store.delete_expired_tasks()).await;
    forgotten.map(|_| ()).map_err(away)
}

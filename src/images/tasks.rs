//! Tasks, wherever they are kept.

use bytes::Bytes;

use super::remembered::Remembered;
use super::stored;
use crate::model::ApiError;
use crate::store::Store;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    /// By name.
    pub key: String,
    pub model: String,
    pub status: Status,
    pub request: Bytes,
    /// The reply, as a client would have got it.
    pub result: Option<Bytes>,
    /// What a client would have been told instead, as JSON.
    pub error: Option<String>,
    /// These in milliseconds since 1970.
    pub created: i64,
    pub expires: i64,
}

/// How the work on a task goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    Alive,
    Succeeded(Bytes),
    Failed(String),
}

/// After a task has expired, this is remembered of it for as long again.
pub(super) const TOMBSTONE_FACTOR: i64 = 2;

/// The error of what was not done in time.
pub(super) const EXPIRED: &str = r#"{"message":"the task has expired, and its result is gone","type":"invalid_request_error","param":null,"code":"expired"}"#;

pub enum Tasks {
    /// In memory: they end with the process.
    Remembered(Remembered),
    Stored(Store),
}

impl Tasks {
    pub fn in_memory() -> Tasks {
        Tasks::Remembered(Remembered::default())
    }

    /// A task that waits to be claimed, for so many milliseconds at most.
    pub(super) async fn create(
        &self,
        key: &str,
        model: &str,
        request: Bytes,
        ttl: i64,
    ) -> Result<Task, ApiError> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.create(key, model, request, ttl)),
            Tasks::Stored(store) => stored::create(store, key, model, request, ttl).await,
        }
    }

    /// One of a key's own.
    pub(super) async fn get(&self, key: &str, id: &str) -> Result<Option<Task>, ApiError> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.get(key, id)),
            Tasks::Stored(store) => stored::get(store, key, id).await,
        }
    }

    /// Those of a key, the latest first.
    pub(super) async fn list(&self, key: &str, most: usize) -> Result<Vec<Task>, ApiError> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.list(key, most)),
            Tasks::Stored(store) => stored::list(store, key, most).await,
        }
    }

    /// How many wait to be claimed.
    pub(super) async fn waiting(&self) -> Result<u64, ApiError> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.waiting()),
            Tasks::Stored(store) => stored::waiting(store).await,
        }
    }

    /// Takes the oldest that waits, or that nobody has been heard of who works on it.
    pub(super) async fn claim(&self, unheard_since: i64) -> Result<Option<Task>, ApiError> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.claim(unheard_since)),
            Tasks::Stored(store) => stored::claim(store, unheard_since).await,
        }
    }

    /// `false`: it runs no more, and the work can stop.
    pub(super) async fn update(&self, id: &str, news: News) -> Result<bool, ApiError> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.update(id, news)),
            Tasks::Stored(store) => stored::update(store, id, news).await,
        }
    }

    /// `false`: there is no such task of the key, or it has ended already.
    pub(super) async fn cancel(&self, key: &str, id: &str) -> Result<bool, ApiError> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.cancel(key, id)),
            Tasks::Stored(store) => stored::cancel(store, key, id).await,
        }
    }

    /// Forgets what has long expired.
    pub(super) async fn expire(&self) -> Result<(), ApiError> {
        match self {
            Tasks::Remembered(tasks) => {
                tasks.expire();
                Ok(())
            }
            Tasks::Stored(store) => stored::expire(store).await,
        }
    }
}

pub(super) fn milliseconds_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

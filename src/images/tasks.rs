//! Tasks, wherever they are kept.

use bytes::Bytes;

use super::remembered::Remembered;
use crate::model::Fault;

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
pub(super) const MEMORIAL: i64 = 2;

pub enum Tasks {
    /// In memory: they end with the process.
    Remembered(Remembered),
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
    ) -> Result<Task, Fault> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.create(key, model, request, ttl)),
        }
    }

    /// One of a key's own.
    pub(super) async fn get(&self, key: &str, id: &str) -> Result<Option<Task>, Fault> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.get(key, id)),
        }
    }

    /// Those of a key, the latest first.
    pub(super) async fn list(&self, key: &str, most: usize) -> Result<Vec<Task>, Fault> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.list(key, most)),
        }
    }

    /// How many wait to be claimed.
    pub(super) async fn waiting(&self) -> Result<u64, Fault> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.waiting()),
        }
    }

    /// Takes the oldest that waits, or that nobody has been heard of who works on it.
    pub(super) async fn claim(&self, unheard_since: i64) -> Result<Option<Task>, Fault> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.claim(unheard_since)),
        }
    }

    /// `false`: it runs no more, and the work can stop.
    pub(super) async fn update(&self, id: &str, news: News) -> Result<bool, Fault> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.update(id, news)),
        }
    }

    /// `false`: there is no such task of the key, or it has ended already.
    pub(super) async fn cancel(&self, key: &str, id: &str) -> Result<bool, Fault> {
        match self {
            Tasks::Remembered(tasks) => Ok(tasks.cancel(key, id)),
        }
    }

    /// Forgets what has long expired.
    pub(super) async fn expire(&self) -> Result<(), Fault> {
        match self {
            Tasks::Remembered(tasks) => tasks.expire(),
        }
        Ok(())
    }
}

pub(super) fn milliseconds_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

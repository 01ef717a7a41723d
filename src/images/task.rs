//! Image tasks and how their work goes.

use std::time::Duration;

use bytes::Bytes;

/// The status of an image task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageTaskStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

/// A request for images whose client fetches the result later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageTask {
    pub id: String,
    /// The id of the key that submitted it.
    pub key: String,
    pub model: String,
    pub status: ImageTaskStatus,
    /// An encoded [`ImageJob`](super::ImageJob).
    pub request: Bytes,
    /// The body of the response.
    pub result: Option<Bytes>,
    /// The `error` object of the response, as JSON.
    pub error: Option<String>,
    /// Milliseconds since 1970, as is `expires`.
    pub created: i64,
    pub expires: i64,
}

/// How many bytes the tasks of a key take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldBytes {
    /// The requests of those that have not ended.
    pub open: usize,
    pub results: usize,
}

/// How many tasks are queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedTasks {
    pub all: u64,
    pub of_key: u64,
}

/// A report of the worker of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskProgress {
    /// The work goes on.
    Heartbeat,
    /// The work did not begin: the task waits again.
    Queued,
    Succeeded(Bytes),
    Failed(String),
}

/// When a client may try again whose task was refused.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How many lifetimes a task is remembered for: after it has expired, clients learn that it has.
pub(super) const TOMBSTONE_FACTOR: i64 = 2;

/// The error of a task that has expired.
pub(super) const EXPIRED: &str = r#"{"message":"the task has expired, and its result is gone","type":"invalid_request_error","param":null,"code":"expired"}"#;

pub(super) fn milliseconds_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

//! Tasks as their clients see them.

use serde::Serialize;
use serde_json::value::RawValue;

use super::tasks::{EXPIRED, Status, Task, milliseconds_now};

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    object: &'static str,
    status: &'static str,
    created: i64,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Shown<'a>>,
}

fn is_expired(task: &Task) -> bool {
    let is_over = match task.status {
        Status::Failed => task.error.as_deref() != Some(EXPIRED),
        status => status == Status::Cancelled,
    };
    !is_over && task.expires <= milliseconds_now()
}

fn summary(task: &Task) -> Shown<'_> {
    let (status, progress) = match task.status {
        _ if is_expired(task) => ("expired", 100),
        Status::Queued => ("queued", 0),
        // No upstream says how far it is.
        Status::Running => ("running", 0),
        Status::Succeeded => ("succeeded", 100),
        Status::Failed => ("failed", 100),
        Status::Cancelled => ("cancelled", 100),
    };
    let error = match status {
        "expired" => Some(EXPIRED),
        _ => task.error.as_deref(),
    };
    Shown {
        id: &task.id,
        object: "image.task",
        status,
        created: task.created.div_euclid(1000),
        model: &task.model,
        progress: Some(progress),
        expires: Some(task.expires.div_euclid(1000)),
        result: None,
        error: error.and_then(|error| serde_json::from_str(error).ok()),
    }
}

/// The answer to the request itself.
pub fn accepted(task: &Task) -> Vec<u8> {
    json(&Shown {
        progress: None,
        expires: None,
        ..summary(task)
    })
}

/// One task, with its result; and the status of the answer: what has expired is gone.
pub fn shown(task: &Task) -> (u16, Vec<u8>) {
    let mut shown = summary(task);
    if is_expired(task) {
        return (410, json(&shown));
    }
    let result = task.result.as_deref();
    shown.result = result.and_then(|result| serde_json::from_slice(result).ok());
    (200, json(&shown))
}

pub fn listed(tasks: &[Task]) -> Vec<u8> {
    json(&List {
        object: "list",
        data: tasks.iter().map(summary).collect(),
    })
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain fields always serialise")
}

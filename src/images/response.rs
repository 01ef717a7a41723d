//! Encodes image tasks for their clients.

use serde::Serialize;
use serde_json::value::RawValue;

use super::task::{EXPIRED, ImageTask, ImageTaskStatus, milliseconds_now};

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct ImageTaskObject<'a> {
    id: &'a str,
    object: &'static str,
    status: &'static str,
    created: i64,
    model: &'a str,
    progress: Option<u8>,
    expires: Option<i64>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct ImageTaskList<'a> {
    object: &'static str,
    data: Vec<ImageTaskObject<'a>>,
}

fn is_expired(task: &ImageTask) -> bool {
    let is_over = match task.status {
        ImageTaskStatus::Failed => task.error.as_deref() != Some(EXPIRED),
        status => status == ImageTaskStatus::Cancelled,
    };
    !is_over && task.expires <= milliseconds_now()
}

fn task_object(task: &ImageTask) -> ImageTaskObject<'_> {
    let (status, progress) = match task.status {
        _ if is_expired(task) => ("expired", 100),
        ImageTaskStatus::Queued => ("queued", 0),
        // Upstreams report no progress.
        ImageTaskStatus::Running => ("running", 0),
        ImageTaskStatus::Succeeded => ("succeeded", 100),
        ImageTaskStatus::Failed => ("failed", 100),
        ImageTaskStatus::Cancelled => ("cancelled", 100),
    };
    let error = match status {
        "expired" => Some(EXPIRED),
        _ => task.error.as_deref(),
    };
    ImageTaskObject {
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

/// Encodes the response to the request that made a task.
pub fn encode_accepted(task: &ImageTask) -> Vec<u8> {
    json(&ImageTaskObject {
        progress: None,
        expires: None,
        ..task_object(task)
    })
}

/// Encodes one task with its result, and returns the status: an expired one is gone.
pub fn encode_task(task: &ImageTask) -> (u16, Vec<u8>) {
    let mut object = task_object(task);
    if is_expired(task) {
        return (410, json(&object));
    }
    let result = task.result.as_deref();
    object.result = result.and_then(|result| serde_json::from_slice(result).ok());
    (200, json(&object))
}

/// Encodes a list of tasks, without their results.
pub fn encode_task_list(tasks: &[ImageTask]) -> Vec<u8> {
    json(&ImageTaskList {
        object: "list",
        data: tasks.iter().map(task_object).collect(),
    })
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain fields always serialise")
}

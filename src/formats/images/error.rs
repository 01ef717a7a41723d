//! Errors: HTTP bodies are those of the chat format, streams have an event of their own.

use serde::Serialize;
use serde_json::Value;

use crate::formats::chat;
use crate::model::ApiError;
use crate::sse::SseWriter;

pub(super) use crate::formats::chat::{decode_error as decode, encode_error as encode};

#[derive(Serialize)]
struct ErrorEvent<'a> {
    r#type: &'static str,
    error: Failure<'a>,
}

#[derive(Serialize)]
struct Failure<'a> {
    r#type: &'static str,
    code: Option<&'a str>,
    message: &'a str,
    param: Option<&'a str>,
}

pub(super) fn encode_in_stream(api_error: &ApiError, out: &mut SseWriter) {
    let event = ErrorEvent {
        r#type: "error",
        error: Failure {
            r#type: chat::error_type(api_error.kind),
            code: api_error.code.as_deref(),
            message: &api_error.message,
            param: api_error.param.as_deref(),
        },
    };
    out.event("error", &event);
}

/// With the failure inside of it, or the failure itself.
pub(super) fn decode_in_stream(data: &str) -> ApiError {
    let event: Value = serde_json::from_str(data).unwrap_or(Value::Null);
    let inner = match &event["error"] {
        Value::Object(_) => &event["error"],
        _ => &event,
    };
    let body = serde_json::json!({ "error": inner });
    decode(200, body.to_string().as_bytes())
}

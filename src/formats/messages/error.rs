//! Error bodies: `{"type":"error","error":{"type","message"},"request_id"}`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::formats::words_of;
use crate::model::{ApiError, ApiErrorKind};
use crate::sse::SseWriter;

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'static str,
    error: Inner<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Inner<'a> {
    r#type: &'static str,
    message: Cow<'a, str>,
}

/// The only thing that clients know a conversation by that is too long for the model.
const TOO_LONG: &str = "prompt is too long";

fn message(api_error: &ApiError) -> Cow<'_, str> {
    let is_said = api_error.message.contains(TOO_LONG);
    if api_error.kind == ApiErrorKind::ContextTooLong && !is_said {
        return format!("{TOO_LONG}: {}", api_error.message).into();
    }
    Cow::Borrowed(&api_error.message)
}

const fn word(kind: ApiErrorKind) -> &'static str {
    match kind {
        ApiErrorKind::Invalid | ApiErrorKind::ContextTooLong | ApiErrorKind::MethodNotAllowed => {
            "invalid_request_error"
        }
        ApiErrorKind::Unauthenticated => "authentication_error",
        ApiErrorKind::Forbidden => "permission_error",
        ApiErrorKind::NotFound => "not_found_error",
        ApiErrorKind::Conflict => "conflict_error",
        ApiErrorKind::TooLarge => "request_too_large",
        ApiErrorKind::RateLimited | ApiErrorKind::OverQuota => "rate_limit_error",
        ApiErrorKind::Internal | ApiErrorKind::Unsupported | ApiErrorKind::BadGateway => {
            "api_error"
        }
        ApiErrorKind::Overloaded => "overloaded_error",
        ApiErrorKind::Timeout => "timeout_error",
    }
}

fn body<'a>(api_error: &'a ApiError, request_id: Option<&'a str>) -> Body<'a> {
    Body {
        r#type: "error",
        error: Inner {
            r#type: word(api_error.kind),
            message: message(api_error),
        },
        request_id,
    }
}

pub(super) fn encode(api_error: &ApiError, request_id: &str) -> (u16, Vec<u8>) {
    let status = match (api_error.kind, api_error.status) {
        (ApiErrorKind::Overloaded, 503) => 529,
        (_, status) => status,
    };
    let bytes = serde_json::to_vec(&body(api_error, Some(request_id)))
        .expect("a struct of strings always serialises");
    (status, bytes)
}

pub(super) fn encode_in_stream(api_error: &ApiError, out: &mut SseWriter) {
    out.event("error", &body(api_error, None));
}

pub(super) fn decode(status: u16, bytes: &[u8]) -> ApiError {
    let body: Value = serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let error = &body["error"];
    let message = error["message"].as_str();
    let kind = kind_of(status, error["type"].as_str(), message);
    let mut api_error = ApiError::new(kind, "");
    if status >= 400 && !kind.has_canonical_status() {
        api_error.status = status;
    }
    api_error.message = words_of(message, &body).to_owned();
    api_error
}

fn kind_of(status: u16, kind: Option<&str>, message: Option<&str>) -> ApiErrorKind {
    match kind {
        Some("invalid_request_error") if message.is_some_and(|text| text.contains(TOO_LONG)) => {
            ApiErrorKind::ContextTooLong
        }
        Some("billing_error") => ApiErrorKind::OverQuota,
        Some("overloaded_error") => ApiErrorKind::Overloaded,
        _ if status >= 400 => ApiErrorKind::from_status(status),
        Some("invalid_request_error") => ApiErrorKind::Invalid,
        Some("authentication_error") => ApiErrorKind::Unauthenticated,
        Some("permission_error") => ApiErrorKind::Forbidden,
        Some("not_found_error") => ApiErrorKind::NotFound,
        Some("conflict_error") => ApiErrorKind::Conflict,
        Some("request_too_large") => ApiErrorKind::TooLarge,
        Some("rate_limit_error") => ApiErrorKind::RateLimited,
        Some("timeout_error") => ApiErrorKind::Timeout,
        Some(_) => ApiErrorKind::Internal,
        None => ApiErrorKind::BadGateway,
    }
}

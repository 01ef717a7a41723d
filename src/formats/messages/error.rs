//! Error bodies: `{"type":"error","error":{"type","message"},"request_id"}`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::formats::words_of;
use crate::model::{Fault, FaultKind};
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

fn message(fault: &Fault) -> Cow<'_, str> {
    let is_said = fault.message.contains(TOO_LONG);
    if fault.kind == FaultKind::ContextTooLong && !is_said {
        return format!("{TOO_LONG}: {}", fault.message).into();
    }
    Cow::Borrowed(&fault.message)
}

const fn word(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Invalid | FaultKind::ContextTooLong | FaultKind::MethodNotAllowed => {
            "invalid_request_error"
        }
        FaultKind::Unauthenticated => "authentication_error",
        FaultKind::Forbidden => "permission_error",
        FaultKind::NotFound => "not_found_error",
        FaultKind::Conflict => "conflict_error",
        FaultKind::TooLarge => "request_too_large",
        FaultKind::RateLimited | FaultKind::OverQuota => "rate_limit_error",
        FaultKind::Internal | FaultKind::Unsupported | FaultKind::BadGateway => "api_error",
        FaultKind::Overloaded => "overloaded_error",
        FaultKind::Timeout => "timeout_error",
    }
}

fn body<'a>(fault: &'a Fault, request_id: Option<&'a str>) -> Body<'a> {
    Body {
        r#type: "error",
        error: Inner {
            r#type: word(fault.kind),
            message: message(fault),
        },
        request_id,
    }
}

pub(super) fn encode(fault: &Fault, request_id: &str) -> (u16, Vec<u8>) {
    let status = match (fault.kind, fault.status) {
        (FaultKind::Overloaded, 503) => 529,
        (_, status) => status,
    };
    let bytes = serde_json::to_vec(&body(fault, Some(request_id)))
        .expect("a struct of strings always serialises");
    (status, bytes)
}

pub(super) fn encode_in_stream(fault: &Fault, out: &mut SseWriter) {
    out.event("error", &body(fault, None));
}

pub(super) fn decode(status: u16, bytes: &[u8]) -> Fault {
    let body: Value = serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let error = &body["error"];
    let message = error["message"].as_str();
    let kind = kind_of(status, error["type"].as_str(), message);
    let mut fault = Fault::new(kind, "");
    if status >= 400 && !kind.has_one_status() {
        fault.status = status;
    }
    fault.message = words_of(message, &body).to_owned();
    fault
}

fn kind_of(status: u16, kind: Option<&str>, message: Option<&str>) -> FaultKind {
    match kind {
        Some("invalid_request_error") if message.is_some_and(|text| text.contains(TOO_LONG)) => {
            FaultKind::ContextTooLong
        }
        Some("billing_error") => FaultKind::OverQuota,
        Some("overloaded_error") => FaultKind::Overloaded,
        _ if status >= 400 => FaultKind::of_status(status),
        Some("invalid_request_error") => FaultKind::Invalid,
        Some("authentication_error") => FaultKind::Unauthenticated,
        Some("permission_error") => FaultKind::Forbidden,
        Some("not_found_error") => FaultKind::NotFound,
        Some("conflict_error") => FaultKind::Conflict,
        Some("request_too_large") => FaultKind::TooLarge,
        Some("rate_limit_error") => FaultKind::RateLimited,
        Some("timeout_error") => FaultKind::Timeout,
        Some(_) => FaultKind::Internal,
        None => FaultKind::BadGateway,
    }
}

//! Error bodies: `{"error":{"code","message","status","details"}}`.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::formats::words_of;
use crate::model::{ApiError, ApiErrorKind};
use crate::sse::SseWriter;

#[derive(Serialize)]
struct Body<'a> {
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<Detail<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Detail<'a> {
    Retry {
        #[serde(rename = "@type")]
        kind: &'static str,
        #[serde(rename = "retryDelay")]
        retry_delay: String,
    },
    Violation {
        #[serde(rename = "@type")]
        kind: &'static str,
        #[serde(rename = "fieldViolations")]
        field_violations: [Violation<'a>; 1],
    },
}

#[derive(Serialize)]
struct Violation<'a> {
    field: &'a str,
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

const fn word(kind: ApiErrorKind) -> &'static str {
    match kind {
        ApiErrorKind::Invalid | ApiErrorKind::ContextTooLong | ApiErrorKind::TooLarge => {
            "INVALID_ARGUMENT"
        }
        ApiErrorKind::Unauthenticated => "UNAUTHENTICATED",
        ApiErrorKind::Forbidden => "PERMISSION_DENIED",
        ApiErrorKind::NotFound => "NOT_FOUND",
        ApiErrorKind::Conflict => "ABORTED",
        ApiErrorKind::RateLimited | ApiErrorKind::OverQuota => "RESOURCE_EXHAUSTED",
        ApiErrorKind::Internal | ApiErrorKind::BadGateway => "INTERNAL",
        ApiErrorKind::Unsupported | ApiErrorKind::MethodNotAllowed => "UNIMPLEMENTED",
        ApiErrorKind::Overloaded => "UNAVAILABLE",
        ApiErrorKind::Timeout => "DEADLINE_EXCEEDED",
    }
}

pub(super) fn body(api_error: &ApiError) -> impl Serialize {
    let retry = api_error.retry_after.map(|delay| Detail::Retry {
        kind: RETRY_INFO,
        retry_delay: format!("{}s", delay.as_secs_f64()),
    });
    let violation = api_error.param.as_deref().map(|field| Detail::Violation {
        kind: BAD_REQUEST,
        field_violations: [Violation { field }],
    });
    Body {
        error: Inner {
            code: api_error.status,
            message: &api_error.message,
            status: word(api_error.kind),
            details: retry.into_iter().chain(violation).collect(),
        },
    }
}

pub(super) fn encode(api_error: &ApiError) -> (u16, Vec<u8>) {
    let bytes =
        serde_json::to_vec(&body(api_error)).expect("a struct of strings always serialises");
    (api_error.status, bytes)
}

/// Clients recognise it only while `error` is the first key.
pub(super) fn encode_in_stream(api_error: &ApiError, out: &mut SseWriter) {
    out.data(&body(api_error));
}

/// Errors may come in a list; replies never do.
pub(super) fn is_listed(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

pub(super) fn decode(status: u16, bytes: &[u8]) -> ApiError {
    let body: Value = serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let error = match &body {
        Value::Array(items) => items.first().map_or(&Value::Null, |item| &item["error"]),
        _ => &body["error"],
    };
    let code = error["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok());
    let status = match code {
        Some(code @ 400..=599) if status < 400 => code,
        _ if status < 400 => 502,
        _ => status,
    };
    let message = error["message"].as_str();
    let kind = kind_of(status, &error["details"], message);
    let mut api_error = ApiError::new(kind, "");
    if !kind.has_canonical_status() {
        api_error.status = status;
    }
    api_error.message = words_of(message, &body).to_owned();
    api_error.retry_after = details(&error["details"]).find_map(|detail| {
        let seconds = detail["retryDelay"].as_str()?.strip_suffix('s')?;
        Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
    });
    api_error
}

fn details(details: &Value) -> impl Iterator<Item = &Value> {
    details.as_array().into_iter().flatten()
}

fn kind_of(status: u16, listed: &Value, message: Option<&str>) -> ApiErrorKind {
    if details(listed).any(|detail| detail["reason"] == "API_KEY_INVALID") {
        return ApiErrorKind::Unauthenticated;
    }
    let per_day = |detail: &Value| {
        details(&detail["violations"]).any(|violation| {
            violation["quotaId"]
                .as_str()
                .is_some_and(|id| id.contains("PerDay"))
        })
    };
    if status == 429 && details(listed).any(per_day) {
        return ApiErrorKind::OverQuota;
    }
    if message.is_some_and(|text| text.contains("exceeds the maximum number of tokens")) {
        return ApiErrorKind::ContextTooLong;
    }
    ApiErrorKind::from_status(status)
}

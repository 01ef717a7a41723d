//! Error bodies: `{"error":{"code","message","status","details"}}`.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::formats::words_of;
use crate::model::{Fault, FaultKind};
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

const fn word(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Invalid | FaultKind::ContextTooLong | FaultKind::TooLarge => "INVALID_ARGUMENT",
        FaultKind::Unauthenticated => "UNAUTHENTICATED",
        FaultKind::Forbidden => "PERMISSION_DENIED",
        FaultKind::NotFound => "NOT_FOUND",
        FaultKind::Conflict => "ABORTED",
        FaultKind::RateLimited | FaultKind::OverQuota => "RESOURCE_EXHAUSTED",
        FaultKind::Internal | FaultKind::BadGateway => "INTERNAL",
        FaultKind::Unsupported | FaultKind::MethodNotAllowed => "UNIMPLEMENTED",
        FaultKind::Overloaded => "UNAVAILABLE",
        FaultKind::Timeout => "DEADLINE_EXCEEDED",
    }
}

pub(super) fn body(fault: &Fault) -> impl Serialize {
    let retry = fault.retry_after.map(|delay| Detail::Retry {
        kind: RETRY_INFO,
        retry_delay: format!("{}s", delay.as_secs_f64()),
    });
    let violation = fault.param.as_deref().map(|field| Detail::Violation {
        kind: BAD_REQUEST,
        field_violations: [Violation { field }],
    });
    Body {
        error: Inner {
            code: fault.status,
            message: &fault.message,
            status: word(fault.kind),
            details: retry.into_iter().chain(violation).collect(),
        },
    }
}

pub(super) fn encode(fault: &Fault) -> (u16, Vec<u8>) {
    let bytes = serde_json::to_vec(&body(fault)).expect("a struct of strings always serialises");
    (fault.status, bytes)
}

/// Clients recognise it only while `error` is the first key.
pub(super) fn encode_in_stream(fault: &Fault, out: &mut SseWriter) {
    out.data(&body(fault));
}

/// Errors may come in a list; replies never do.
pub(super) fn is_listed(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"[")
}

pub(super) fn decode(status: u16, bytes: &[u8]) -> Fault {
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
    let mut fault = Fault::new(kind, "");
    if !kind.has_one_status() {
        fault.status = status;
    }
    fault.message = words_of(message, &body).to_owned();
    fault.retry_after = details(&error["details"]).find_map(|detail| {
        let seconds = detail["retryDelay"].as_str()?.strip_suffix('s')?;
        Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
    });
    fault
}

fn details(details: &Value) -> impl Iterator<Item = &Value> {
    details.as_array().into_iter().flatten()
}

fn kind_of(status: u16, listed: &Value, message: Option<&str>) -> FaultKind {
    if details(listed).any(|detail| detail["reason"] == "API_KEY_INVALID") {
        return FaultKind::Unauthenticated;
    }
    let per_day = |detail: &Value| {
        details(&detail["violations"]).any(|violation| {
            violation["quotaId"]
                .as_str()
                .is_some_and(|id| id.contains("PerDay"))
        })
    };
    if status == 429 && details(listed).any(per_day) {
        return FaultKind::OverQuota;
    }
    if message.is_some_and(|text| text.contains("exceeds the maximum number of tokens")) {
        return FaultKind::ContextTooLong;
    }
    FaultKind::of_status(status)
}

//! Error bodies: `{"error":{"message","type","param","code"}}`.

use serde::Serialize;
use serde_json::Value;

use crate::model::{Fault, FaultKind};
use crate::sse::SseWriter;

#[derive(Serialize)]
struct Body<'a> {
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

/// Type and code of each kind.
const fn words(kind: FaultKind) -> (&'static str, Option<&'static str>) {
    match kind {
        FaultKind::Invalid | FaultKind::Conflict => ("invalid_request_error", None),
        FaultKind::ContextTooLong => ("invalid_request_error", Some("context_length_exceeded")),
        FaultKind::Unauthenticated => ("invalid_request_error", Some("invalid_api_key")),
        FaultKind::Forbidden => ("invalid_request_error", Some("permission_denied")),
        FaultKind::NotFound => ("invalid_request_error", Some("model_not_found")),
        FaultKind::MethodNotAllowed => ("invalid_request_error", Some("method_not_allowed")),
        FaultKind::TooLarge => ("invalid_request_error", Some("request_too_large")),
        FaultKind::RateLimited => ("rate_limit_error", Some("rate_limit_exceeded")),
        FaultKind::OverQuota => ("insufficient_quota", Some("insufficient_quota")),
        FaultKind::Internal | FaultKind::BadGateway => ("server_error", None),
        FaultKind::Unsupported => ("server_error", Some("unsupported")),
        FaultKind::Overloaded => ("server_error", Some("overloaded")),
        FaultKind::Timeout => ("server_error", Some("timeout")),
    }
}

fn body(fault: &Fault) -> Body<'_> {
    let (kind, code) = words(fault.kind);
    Body {
        error: Inner {
            message: &fault.message,
            r#type: kind,
            param: fault.param.as_deref(),
            code: fault.code.as_deref().or(code),
        },
    }
}

pub(in crate::formats) fn encode(fault: &Fault) -> (u16, Vec<u8>) {
    let bytes = serde_json::to_vec(&body(fault)).expect("a struct of strings always serialises");
    (fault.status, bytes)
}

pub(super) fn encode_in_stream(fault: &Fault, out: &mut SseWriter) {
    out.data(&body(fault));
}

/// Dialects: an array around the body, an integer code that is the status, an error inside a 200.
pub(in crate::formats) fn decode(status: u16, bytes: &[u8]) -> Fault {
    let body: Value = serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let error = match &body {
        Value::Array(items) => items.first().map_or(&Value::Null, |item| &item["error"]),
        _ => &body["error"],
    };
    let text = |key: &str| error[key].as_str().map(str::to_owned);
    let status = match error["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
    {
        Some(code @ 400..=599) => code,
        _ if status >= 400 => status,
        _ => 502,
    };
    let (kind, code) = (text("type"), text("code"));
    let mut fault = Fault::new(kind_of(status, kind.as_deref(), code.as_deref()), "");
    fault.status = if fault.kind == FaultKind::NotFound {
        404
    } else {
        status
    };
    fault.message = text("message")
        .or_else(|| error.as_str().map(str::to_owned))
        .unwrap_or_else(|| format!("upstream error (status {status})"));
    fault.param = text("param");
    fault.code = code;
    fault
}

fn kind_of(status: u16, kind: Option<&str>, code: Option<&str>) -> FaultKind {
    match (kind, code) {
        (_, Some("context_length_exceeded")) => FaultKind::ContextTooLong,
        (Some("insufficient_quota"), _) | (_, Some("insufficient_quota")) => FaultKind::OverQuota,
        (Some("authentication_error"), _) | (_, Some("invalid_api_key")) => {
            FaultKind::Unauthenticated
        }
        (_, Some("model_not_found" | "DeploymentNotFound")) => FaultKind::NotFound,
        _ => FaultKind::of_status(status),
    }
}

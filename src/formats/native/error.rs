//! Error bodies: `{"error":{"code","message","status","details"}}`.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::Native;
use crate::formats::{ErrorCodec, InterruptedStream, error_message};
use crate::json::decode_value;
use crate::model::{ApiError, ApiErrorKind};
use crate::sse::SseWriter;

#[derive(Serialize)]
struct NativeErrorBody<'a> {
    error: NativeError<'a>,
}

#[derive(Serialize)]
struct NativeError<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<NativeErrorDetail<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum NativeErrorDetail<'a> {
    RetryInfo {
        #[serde(rename = "@type")]
        kind: &'static str,
        #[serde(rename = "retryDelay")]
        retry_delay: String,
    },
    BadRequest {
        #[serde(rename = "@type")]
        kind: &'static str,
        #[serde(rename = "fieldViolations")]
        field_violations: [FieldViolation<'a>; 1],
    },
}

#[derive(Serialize)]
struct FieldViolation<'a> {
    field: &'a str,
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// The canonical status of an error.
const fn status_name(kind: ApiErrorKind) -> &'static str {
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

/// The body of an error, as JSON response or as chunk of a stream.
pub(super) fn error_body(api_error: &ApiError) -> impl Serialize {
    let retry = api_error
        .retry_after
        .map(|delay| NativeErrorDetail::RetryInfo {
            kind: RETRY_INFO,
            retry_delay: format!("{}s", delay.as_secs_f64()),
        });
    let violation = api_error
        .param
        .as_deref()
        .map(|field| NativeErrorDetail::BadRequest {
            kind: BAD_REQUEST,
            field_violations: [FieldViolation { field }],
        });
    NativeErrorBody {
        error: NativeError {
            code: api_error.status,
            message: &api_error.message,
            status: status_name(api_error.kind),
            details: retry.into_iter().chain(violation).collect(),
        },
    }
}

impl ErrorCodec for Native {
    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        let bytes = serde_json::to_vec(&error_body(api_error))
            .expect("a struct of strings always serialises");
        (api_error.status, bytes)
    }

    /// Clients recognise the error only if `error` is the first key.
    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        _: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        out.data(&error_body(api_error));
    }

    fn decode_error(&self, status: u16, bytes: &[u8]) -> ApiError {
        let body = decode_value(bytes);
        let error = match &body {
            Value::Array(items) => {
                let failed = items.iter().find(|item| has_error(item));
                failed.map_or(&Value::Null, |item| &item["error"])
            }
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
        let mut api_error = ApiError::sent(kind, "");
        if !kind.has_canonical_status() {
            api_error.status = status;
        }
        api_error.message = error_message(message, &body).to_owned();
        api_error.retry_after = elements(&error["details"]).find_map(|detail| {
            let seconds = detail["retryDelay"].as_str()?.strip_suffix('s')?;
            Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
        });
        api_error
    }
}

/// Tells whether a body is a list with an error, or with nothing: upstreams may send errors in one. Any other list may have been
/// generated.
pub(super) fn is_error_list(body: &[u8]) -> bool {
    if !body.trim_ascii_start().starts_with(b"[") {
        return false;
    }
    let items: Vec<Value> = match serde_json::from_slice(body) {
        Ok(items) => items,
        Err(_) => return false,
    };
    items.is_empty() || items.iter().any(has_error)
}

fn has_error(item: &Value) -> bool {
    !item["error"].is_null()
}

/// The elements of an array; none if the value is not one.
fn elements(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

fn kind_of(status: u16, details: &Value, message: Option<&str>) -> ApiErrorKind {
    if elements(details).any(|detail| detail["reason"] == "API_KEY_INVALID") {
        return ApiErrorKind::Unauthenticated;
    }
    let per_day = |detail: &Value| {
        elements(&detail["violations"]).any(|violation| {
            violation["quotaId"]
                .as_str()
                .is_some_and(|id| id.contains("PerDay"))
        })
    };
    if status == 429 && elements(details).any(per_day) {
        return ApiErrorKind::OverQuota;
    }
    if message.is_some_and(|text| text.contains("exceeds the maximum number of tokens")) {
        return ApiErrorKind::ContextTooLong;
    }
    ApiErrorKind::from_status(status)
}

//! Error bodies: `{"type":"error","error":{"type","message"},"request_id"}`.

use std::borrow::Cow;

use serde::Serialize;

use super::Messages;
use crate::formats::{ErrorCodec, InterruptedStream, error_message};
use crate::json::decode_value;
use crate::model::{ApiError, ApiErrorKind};
use crate::sse::SseWriter;

#[derive(Serialize)]
struct MessagesErrorBody<'a> {
    r#type: &'static str,
    error: MessagesErrorDetail<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct MessagesErrorDetail<'a> {
    r#type: &'static str,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<ThreadErrorDetails>,
}

/// Tells the SDKs' tool runners to send the whole conversation instead of a `thread`.
#[derive(Serialize)]
struct ThreadErrorDetails {
    error_code: &'static str,
    unsupported: [&'static str; 1],
}

/// The field that continues a conversation which the upstream keeps.
pub(super) const THREAD: &str = "thread";

/// The code of the error for a `thread` that no upstream keeps for this key.
const THREAD_UNSUPPORTED: &str = "thread_unsupported_request";

/// The words by which clients recognize a prompt that is too long for the model.
const TOO_LONG: &str = "prompt is too long";

fn encode_message(api_error: &ApiError) -> Cow<'_, str> {
    let has_words = api_error.message.contains(TOO_LONG);
    if api_error.kind == ApiErrorKind::ContextTooLong && !has_words {
        return format!("{TOO_LONG}: {}", api_error.message).into();
    }
    Cow::Borrowed(&api_error.message)
}

const fn encode_type(kind: ApiErrorKind) -> &'static str {
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

fn encode_details(api_error: &ApiError) -> Option<ThreadErrorDetails> {
    let is_about_thread = api_error.param.as_deref() == Some(THREAD);
    is_about_thread.then_some(ThreadErrorDetails {
        error_code: THREAD_UNSUPPORTED,
        unsupported: [THREAD],
    })
}

fn encode_body<'a>(api_error: &'a ApiError, request_id: Option<&'a str>) -> MessagesErrorBody<'a> {
    MessagesErrorBody {
        r#type: "error",
        error: MessagesErrorDetail {
            r#type: encode_type(api_error.kind),
            message: encode_message(api_error),
            details: encode_details(api_error),
        },
        request_id,
    }
}

impl ErrorCodec for Messages {
    fn encode_error(&self, api_error: &ApiError, request_id: &str) -> (u16, Vec<u8>) {
        let status = match (api_error.kind, api_error.status) {
            (ApiErrorKind::Overloaded, 503) => 529,
            (_, status) => status,
        };
        let bytes = serde_json::to_vec(&encode_body(api_error, Some(request_id)))
            .expect("a struct of strings always serialises");
        (status, bytes)
    }

    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        _: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        encode_in_stream(api_error, out);
    }

    fn decode_error(&self, status: u16, bytes: &[u8]) -> ApiError {
        let body = decode_value(bytes);
        // Google wraps some errors in an array.
        let body = body.get(0).unwrap_or(&body);
        let error = &body["error"];
        let message = error["message"].as_str();
        let kind = decode_kind(status, error["type"].as_str(), message);
        let mut api_error = ApiError::sent(kind, "");
        if status >= 400 && !kind.has_canonical_status() {
            api_error.status = status;
        }
        api_error.message = error_message(message, body).to_owned();
        api_error
    }

    /// Tells whether an error has the shape of this format: hosts of its models have their own.
    fn is_own_error(&self, bytes: &[u8]) -> bool {
        let body = decode_value(bytes);
        body["error"]["type"].is_string()
    }
}

/// Encodes an error as the last event of a stream.
pub(super) fn encode_in_stream(api_error: &ApiError, out: &mut SseWriter) {
    out.event("error", &encode_body(api_error, None));
}

fn decode_kind(status: u16, kind: Option<&str>, message: Option<&str>) -> ApiErrorKind {
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

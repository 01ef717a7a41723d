//! Errors in a stream; HTTP error bodies are those of the chat format.

use serde::Serialize;
use serde_json::Value;

use crate::formats::chat;
use crate::json::decode_value;
use crate::model::{ApiError, ApiErrorKind};
use crate::sse::SseWriter;

/// An `error` event. The API reference has the flat form, real streams have the nested one, and some SDKs take a
/// stream for complete unless they see the latter: so both are encoded.
#[derive(Serialize)]
struct ResponsesErrorEvent<'a> {
    r#type: &'static str,
    sequence_number: u64,
    #[serde(flatten)]
    flat: StreamErrorFields<'a>,
    error: NestedError<'a>,
}

#[derive(Serialize)]
struct NestedError<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    fields: StreamErrorFields<'a>,
}

#[derive(Serialize, Clone, Copy)]
struct StreamErrorFields<'a> {
    code: &'static str,
    message: &'a str,
    param: Option<&'a str>,
}

/// Encodes the code of an error; clients know these only, so an upstream's own code is not passed on.
pub(super) const fn encode_code(kind: ApiErrorKind) -> &'static str {
    match kind {
        ApiErrorKind::RateLimited => "rate_limit_exceeded",
        ApiErrorKind::OverQuota => "insufficient_quota",
        ApiErrorKind::ContextTooLong => "context_length_exceeded",
        ApiErrorKind::Invalid => "invalid_prompt",
        _ => "server_error",
    }
}

/// Encodes an error as an event.
pub(super) fn encode_in_stream(api_error: &ApiError, sequence_number: u64, out: &mut SseWriter) {
    let fields = StreamErrorFields {
        code: encode_code(api_error.kind),
        message: &api_error.message,
        param: api_error.param.as_deref(),
    };
    let event = ResponsesErrorEvent {
        r#type: "error",
        sequence_number,
        flat: fields,
        error: NestedError {
            r#type: chat::error_type(api_error.kind),
            fields,
        },
    };
    out.event("error", &event);
}

/// Decodes an `error` event, flat or nested, or a failed response.
pub(super) fn decode_in_stream(data: &str) -> ApiError {
    let event = decode_value(data.as_bytes());
    let inner = match (&event["response"]["error"], &event["error"]) {
        (Value::Object(_), _) => &event["response"]["error"],
        (_, Value::Object(_)) => &event["error"],
        _ => &event,
    };
    let code = inner["code"].as_str();
    let status = match code {
        Some("rate_limit_exceeded" | "insufficient_quota") => 429,
        Some("invalid_prompt" | "context_length_exceeded") => 400,
        Some("server_error") => 500,
        _ => 502,
    };
    let body = serde_json::json!({ "error": inner });
    chat::decode_error(status, body.to_string().as_bytes())
}

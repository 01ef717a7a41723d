//! Errors: responses use the body of the chat format, streams an event of their own.

use serde::Serialize;
use serde_json::Value;

use super::Images;
use crate::formats::{ErrorCodec, InterruptedStream, chat};
use crate::json::decode_value;
use crate::model::ApiError;
use crate::sse::SseWriter;

#[derive(Serialize)]
struct ImageErrorEvent<'a> {
    r#type: &'static str,
    error: ImageError<'a>,
}

#[derive(Serialize)]
struct ImageError<'a> {
    r#type: &'static str,
    code: Option<&'a str>,
    message: &'a str,
    param: Option<&'a str>,
}

impl ErrorCodec for Images {
    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError {
        chat::decode_error(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        chat::encode_error(api_error)
    }

    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        _: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        encode_in_stream(api_error, out);
    }
}

/// Encodes an error as the last event of a stream.
pub(super) fn encode_in_stream(api_error: &ApiError, out: &mut SseWriter) {
    let event = ImageErrorEvent {
        r#type: "error",
        error: ImageError {
            r#type: chat::error_type(api_error.kind),
            code: api_error.code.as_deref(),
            message: &api_error.message,
            param: api_error.param.as_deref(),
        },
    };
    out.event("error", &event);
}

/// Decodes an error event, which holds the error in `error` or is the error itself.
pub(super) fn decode_in_stream(data: &str) -> ApiError {
    let event = decode_value(data.as_bytes());
    let inner = match &event["error"] {
        Value::Object(_) => &event["error"],
        _ => &event,
    };
    let body = serde_json::json!({ "error": inner });
    chat::decode_error(200, body.to_string().as_bytes())
}

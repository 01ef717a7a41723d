//! Error bodies: `{"error":{"message","type","param","code"}}`.

use serde::Serialize;
use serde_json::Value;

use super::Chat;
use crate::formats::{ErrorCodec, InterruptedStream, error_message};
use crate::json::decode_value;
use crate::model::{ApiError, ApiErrorKind, FieldLocation};
use crate::sse::SseWriter;

/// An encoded error body.
#[derive(Serialize)]
struct ChatErrorBody<'a> {
    error: ChatError<'a>,
}

#[derive(Serialize)]
struct ChatError<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

/// The `type` and the `code` of each kind of error.
const fn type_and_code(kind: ApiErrorKind) -> (&'static str, Option<&'static str>) {
    match kind {
        ApiErrorKind::Invalid | ApiErrorKind::Conflict => ("invalid_request_error", None),
        ApiErrorKind::ContextTooLong => ("invalid_request_error", Some("context_length_exceeded")),
        ApiErrorKind::Unauthenticated => ("invalid_request_error", Some("invalid_api_key")),
        ApiErrorKind::Forbidden => ("invalid_request_error", Some("permission_denied")),
        ApiErrorKind::NotFound => ("invalid_request_error", Some("model_not_found")),
        ApiErrorKind::MethodNotAllowed => ("invalid_request_error", Some("method_not_allowed")),
        ApiErrorKind::TooLarge => ("invalid_request_error", Some("request_too_large")),
        ApiErrorKind::RateLimited => ("rate_limit_error", Some("rate_limit_exceeded")),
        ApiErrorKind::OverQuota => ("insufficient_quota", Some("insufficient_quota")),
        ApiErrorKind::Internal | ApiErrorKind::BadGateway => ("server_error", None),
        ApiErrorKind::Unsupported => ("server_error", Some("unsupported")),
        ApiErrorKind::Overloaded => ("server_error", Some("overloaded")),
        ApiErrorKind::Timeout => ("server_error", Some("timeout")),
    }
}

/// The `type` of each kind of error.
pub(in crate::formats) const fn error_type(kind: ApiErrorKind) -> &'static str {
    type_and_code(kind).0
}

fn error_body(api_error: &ApiError) -> ChatErrorBody<'_> {
    let (kind, code) = type_and_code(api_error.kind);
    ChatErrorBody {
        error: ChatError {
            message: &api_error.message,
            r#type: kind,
            param: api_error.param.as_deref(),
            code: api_error.code.as_deref().or(code),
        },
    }
}

/// Encodes an error response: its status and its body.
pub(in crate::formats) fn encode_error(api_error: &ApiError) -> (u16, Vec<u8>) {
    let bytes =
        serde_json::to_vec(&error_body(api_error)).expect("a struct of strings always serialises");
    (api_error.status, bytes)
}

/// Encodes an error as the last event of a stream.
pub(super) fn encode_stream_error(api_error: &ApiError, out: &mut SseWriter) {
    out.data(&error_body(api_error));
}

impl ErrorCodec for Chat {
    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError {
        decode_error(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        encode_error(api_error)
    }

    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        _: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        encode_stream_error(api_error, out);
    }
}

/// Decodes an error body in all dialects: an array around it, an integer `code` that is the status, an
/// error inside of a 200.
pub(in crate::formats) fn decode_error(status: u16, bytes: &[u8]) -> ApiError {
    let body = decode_value(bytes);
    let error = match &body {
        Value::Array(items) => items.first().map_or(&Value::Null, |item| &item["error"]),
        _ => &body["error"],
    };
    let text = |key: &str| error[key].as_str().map(str::to_owned);
    let status_seen = match error["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
    {
        Some(code @ 400..=599) => Some(code),
        _ => (status >= 400).then_some(status),
    };
    let (kind, code) = (text("type"), text("code"));
    let kind = kind_of_error(status_seen, kind.as_deref(), code.as_deref());
    let mut api_error = ApiError::sent(kind, "");
    if let Some(status_seen) = status_seen
        && !kind.has_canonical_status()
    {
        api_error.status = status_seen;
    }
    let message = error["message"].as_str().or(error.as_str());
    api_error.message = error_message(message, &body).to_owned();
    // The text that the model produced instead of a call explains the error.
    if let Some(failed) = text("failed_generation").filter(|text| !text.is_empty()) {
        api_error.message = format!("{} (failed_generation: {failed})", api_error.message);
    }
    api_error.param = text("param");
    api_error.code = code;
    api_error
}

/// The kind of an error. A known code is more precise than the status; inside of a 200 only type and code
/// are known.
fn kind_of_error(status: Option<u16>, kind: Option<&str>, code: Option<&str>) -> ApiErrorKind {
    match (kind, code) {
        (_, Some("context_length_exceeded")) => ApiErrorKind::ContextTooLong,
        (Some("insufficient_quota"), _) | (_, Some("insufficient_quota")) => {
            ApiErrorKind::OverQuota
        }
        (Some("authentication_error"), _) | (_, Some("invalid_api_key")) => {
            ApiErrorKind::Unauthenticated
        }
        (_, Some("model_not_found" | "DeploymentNotFound")) => ApiErrorKind::NotFound,
        (kind, code) => status.map_or_else(|| kind_of_names(kind, code), ApiErrorKind::from_status),
    }
}

fn kind_of_names(kind: Option<&str>, code: Option<&str>) -> ApiErrorKind {
    match (kind, code) {
        (_, Some("rate_limit_exceeded")) | (Some("rate_limit_error"), _) => {
            ApiErrorKind::RateLimited
        }
        (_, Some("overloaded")) | (Some("overloaded_error"), _) => ApiErrorKind::Overloaded,
        (_, Some("timeout")) => ApiErrorKind::Timeout,
        (Some("invalid_request_error"), _) => ApiErrorKind::Invalid,
        _ => ApiErrorKind::BadGateway,
    }
}

/// The error for content that the format has no field for.
pub(super) fn unsupported_content(location: &FieldLocation, why: &str) -> ApiError {
    ApiError::invalid(format!("the upstream of this model cannot take it: {why}"))
        .at_location(location.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_inside_of_a_200_is_decoded_by_its_names() {
        for (body, kind, status) in [
            (
                r#"{"error":{"message":"m","type":"server_error","code":"overloaded"}}"#,
                ApiErrorKind::Overloaded,
                503,
            ),
            (
                r#"{"error":{"message":"m","type":"rate_limit_error","code":null}}"#,
                ApiErrorKind::RateLimited,
                429,
            ),
            (
                r#"{"error":{"message":"m","code":"model_not_found"}}"#,
                ApiErrorKind::NotFound,
                404,
            ),
            (
                r#"{"error":{"message":"m","code":403}}"#,
                ApiErrorKind::Forbidden,
                403,
            ),
            (r#"{"error":"broken"}"#, ApiErrorKind::BadGateway, 502),
        ] {
            let api_error = decode_error(200, body.as_bytes());
            assert_eq!((api_error.kind, api_error.status), (kind, status), "{body}");
        }
    }

    #[test]
    fn the_status_of_the_upstream_is_kept() {
        let api_error = decode_error(422, br#"[{"error":{"message":"m","param":"p"}}]"#);
        assert_eq!(
            (api_error.kind, api_error.status),
            (ApiErrorKind::Invalid, 422)
        );
        assert_eq!(
            (&*api_error.message, api_error.param.as_deref()),
            ("m", Some("p"))
        );
        assert_eq!(
            decode_error(400, br#"{"error":{"code":"model_not_found"}}"#).status,
            404
        );
        assert_eq!(decode_error(529, b"{}").status, 503);
        assert_eq!(decode_error(402, b"{}").status, 429);
        assert_eq!(decode_error(503, b"<html>").message, "upstream error");
        assert_eq!(
            decode_error(400, br#"{"error":{"code":"invalid_api_key"}}"#).status,
            401
        );
    }

    #[test]
    fn a_failed_generation_is_in_the_message() {
        let body =
            br#"{"error":{"message":"m","code":"tool_use_failed","failed_generation":"<f>"}}"#;
        assert_eq!(
            decode_error(400, body).message,
            "m (failed_generation: <f>)"
        );
    }

    #[test]
    fn an_error_without_a_message_gets_one_in_every_format() {
        for format in crate::model::Format::ALL {
            for body in [r#"{"error":""}"#, r#"{"error":{"message":""}}"#] {
                let api_error = format.codec().decode_error(500, body.as_bytes());
                assert_eq!(
                    api_error.message,
                    crate::formats::body::DEFAULT_ERROR_MESSAGE,
                    "{format:?} {body}"
                );
            }
            for body in [
                r#"{"object":"error","message":"Too long.","code":400}"#,
                r#"{"detail":"Too long."}"#,
            ] {
                let api_error = format.codec().decode_error(400, body.as_bytes());
                let decoded = (&*api_error.message, api_error.status);
                assert_eq!(decoded, ("Too long.", 400), "{format:?} {body}");
            }
        }
    }
}

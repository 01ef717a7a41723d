//! Errors of upstreams: their translation, and the errors for responses that are broken.

use http::StatusCode;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::formats::{Codec, ResponseObserver};
use crate::model::{ApiError, Format};

/// Translates an upstream's error into the status and body for a client of another format.
pub fn error(
    from: Format,
    to: Format,
    status: u16,
    body: &[u8],
    request_id: &str,
) -> (u16, Vec<u8>) {
    let api_error = from.codec().decode_error(status, body);
    to.codec().encode_error(&api_error, request_id)
}

/// The error for a response of an unexpected content type.
pub(super) fn unexpected_content_type(mime: &str, stream: bool) -> ApiError {
    let expected = if stream { "a stream" } else { "JSON" };
    let mime = if mime.is_empty() {
        "no content type"
    } else {
        mime
    };
    ApiError::bad_gateway(format!(
        "the upstream answered with {mime} instead of {expected}"
    ))
}

/// Decodes an error that some backends send as plain JSON, or in a list, in place of events or of a
/// response. The status was one of success, so only the body tells what it is.
pub(super) fn decode_bare_error(codec: &dyn Codec, raw: &[u8]) -> Option<ApiError> {
    #[derive(Deserialize)]
    struct BareError {
        #[serde(rename = "error")]
        _error: IgnoredAny,
    }
    match raw.trim_ascii_start().first()? {
        b'{' => serde_json::from_slice::<BareError>(raw).map(|_| ()).ok()?,
        b'[' => serde_json::from_slice::<[BareError; 1]>(raw)
            .map(|_| ())
            .ok()?,
        _ => return None,
    }
    Some(codec.decode_error(StatusCode::OK.as_u16(), raw))
}

/// Tells whether a body with a status of success is the failure of an upstream, which costs nothing: an error, or the page of a
/// web server in front of it. Everything else may have been generated, also what cannot be read.
pub(super) fn is_failure(codec: &dyn Codec, body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<") || codec.is_error_body(body)
}

/// The error of an event that cannot be decoded: the upstream's own, where it has sent one outside of its format's frame.
pub(super) fn undecoded_event(
    codec: &dyn Codec,
    data: &str,
    api_error: ApiError,
    observer: &mut ResponseObserver,
) -> ApiError {
    if api_error.is_sent {
        return api_error;
    }
    decode_bare_error(codec, data.as_bytes()).unwrap_or_else(|| {
        observer.note_unreadable(data);
        api_error
    })
}

/// The error for a stream that ended without the format's own mark of an end.
pub(super) fn incomplete_stream() -> ApiError {
    ApiError::bad_gateway("the upstream's stream ended before its response was complete")
}

/// Notes that an event, a document or what a chunk becomes is larger than the limit, and makes the error for it.
pub(super) fn chunk_too_large(limit: usize, observer: &mut ResponseObserver) -> ApiError {
    observer.is_unread = true;
    ApiError::bad_gateway(format!(
        "an event, a chunk or a body of the upstream's response is larger than {limit} bytes (`server.body_limit`)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_error_in_place_of_events_is_decoded() {
        for (format, body, status) in [
            (
                Format::Chat,
                r#"{"error":{"message":"No room.","type":"server_error"}}"#,
                502,
            ),
            (
                Format::Chat,
                r#"{"error":{"message":"No room.","type":"rate_limit_error"}}"#,
                429,
            ),
            (
                Format::Responses,
                r#"{"error":{"message":"No room.","code":"context_length_exceeded"}}"#,
                400,
            ),
            (
                Format::Messages,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"No room."}}"#,
                503,
            ),
            (
                Format::Native,
                r#" [{"error":{"code":429,"message":"No room."}}]"#,
                429,
            ),
        ] {
            let api_error = decode_bare_error(format.codec(), body.as_bytes()).expect("an error");
            assert_eq!(
                (api_error.status, &*api_error.message),
                (status, "No room.")
            );
            assert!(api_error.is_sent);
        }
        let codec = Format::Chat.codec();
        for other in [&b": comment\n"[..], b"{}", b"[{}]", b"id: 7\n\n", b""] {
            assert_eq!(decode_bare_error(codec, other), None);
        }
    }
}

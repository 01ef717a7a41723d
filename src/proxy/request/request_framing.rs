//! The framing of an HTTP/1 request: what another proxy could read as something else is refused.

use http::Version;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use memchr::memchr_iter;
use pingora_core::protocols::http::ServerSession;
use pingora_http::RequestHeader;

use crate::model::ApiError;
use crate::proxy::connection::http1_framing::{BodyFraming, FramingCheck, HEADER_LIMIT};
use crate::proxy::connection::listener;

/// Refuses a request whose framing has more than one reading, and closes its connection: where such
/// a request ends is a guess.
pub(in crate::proxy) fn check(session: &mut ServerSession) -> Result<(), ApiError> {
    let ServerSession::H1(http1) = &*session else {
        return Ok(());
    };
    let (header, bytes) = (http1.req_header(), http1.get_headers_raw_bytes());
    let framing = listener::check_framing(bytes.len(), body_framing(header));
    if framing == FramingCheck::HeaderTooLong {
        session.set_keepalive(None);
        return Err(header_too_long());
    }
    let checked = check_line_ends(&bytes)
        .and_then(|()| check_host(header))
        .and_then(|()| check_transfer_encoding(header));
    if let Err(message) = checked {
        session.set_keepalive(None);
        return Err(ApiError::invalid(message));
    }
    match framing {
        FramingCheck::InvalidChunk => return Err(invalid_chunk(session)),
        // Whatever another proxy takes for the next request is not served.
        FramingCheck::Unknown => session.set_keepalive(None),
        FramingCheck::Valid | FramingCheck::HeaderTooLong => {}
    }
    Ok(())
}

/// The error for a header that is longer than a header may be.
pub(in crate::proxy) fn header_too_long() -> ApiError {
    let message = format!("the header is longer than {HEADER_LIMIT} bytes");
    let mut api_error = ApiError::invalid(message);
    api_error.status = 431;
    api_error
}

/// The error for a chunk whose head is wrong; the connection is closed.
pub(in crate::proxy) fn invalid_chunk(session: &mut ServerSession) -> ApiError {
    session.set_keepalive(None);
    ApiError::invalid(
        "the head of a chunk of the body must be a hexadecimal size, extensions without control characters, and CRLF",
    )
}

/// How pingora finds the end of the body. Where a length is written in a way of its own, it counts as none.
fn body_framing(header: &RequestHeader) -> BodyFraming {
    if header.headers.contains_key(TRANSFER_ENCODING) {
        return BodyFraming::Chunks;
    }
    let length = header.headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    BodyFraming::Length(length.unwrap_or(0))
}

/// pingora's parser accepts lines that end with LF alone.
fn check_line_ends(header: &[u8]) -> Result<(), &'static str> {
    let is_whole = |at: usize| at > 0 && header[at - 1] == b'\r';
    match memchr_iter(b'\n', header).all(is_whole) {
        true => Ok(()),
        false => Err("a line of the request header ends with LF alone: end it with CRLF"),
    }
}

/// RFC 9112 section 3.2. pingora compares the header with the target, and refuses two of them.
fn check_host(header: &RequestHeader) -> Result<(), &'static str> {
    match header.version == Version::HTTP_11 && !header.headers.contains_key(HOST) {
        true => Err("the request has no `host` header: HTTP/1.1 needs one"),
        false => Ok(()),
    }
}

/// Only `chunked` is decoded, and two headers could be read by one proxy as the first, by another as
/// the second.
fn check_transfer_encoding(header: &RequestHeader) -> Result<(), &'static str> {
    let mut encodings = header.headers.get_all(TRANSFER_ENCODING).iter();
    let is_known = match (encodings.next(), encodings.next()) {
        (None, _) => true,
        (Some(encoding), None) => encoding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    };
    match is_known {
        true => Ok(()),
        false => Err("`transfer-encoding` must be `chunked`, once"),
    }
}

//! The framing of an HTTP/1 request: what another proxy could read as something else is refused.

use http::Version;
use http::header::{HOST, TRANSFER_ENCODING};
use memchr::memchr_iter;
use pingora_core::protocols::http::ServerSession;
use pingora_http::RequestHeader;

use crate::model::ApiError;

/// Refuses a request whose header has more than one reading, and closes its connection: where such
/// a request ends is a guess.
pub(in crate::proxy) fn check(session: &mut ServerSession) -> Result<(), ApiError> {
    let ServerSession::H1(http1) = &*session else {
        return Ok(());
    };
    let checked = check_line_ends(&http1.get_headers_raw_bytes())
        .and_then(|()| check_host(http1.req_header()))
        .and_then(|()| check_transfer_encoding(http1.req_header()));
    checked.map_err(|message| {
        session.set_keepalive(None);
        ApiError::invalid(message)
    })
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

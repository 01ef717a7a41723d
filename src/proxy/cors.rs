//! Cross-origin requests of web pages (CORS): preflight requests, and headers of responses.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderValue, Method};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

use crate::config::CorsOrigins;
use crate::formats::HeaderFields;

const METHODS: &str = "GET, POST, DELETE";

/// How long a browser may remember the answer to a preflight request, in seconds.
const MAX_AGE: u64 = 600;

/// Tells whether a browser asks if a page may send a request.
pub(super) fn is_preflight(cors: Option<&CorsOrigins>, request: &RequestHeader) -> bool {
    request.method == Method::OPTIONS
        && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && cors.is_some_and(|cors| allowed_origin(cors, request).is_some())
}

/// The answer to a preflight request: every header may be sent, as clients differ in theirs.
pub(super) fn preflight_fields(request: &RequestHeader) -> HeaderFields {
    let mut fields = HeaderFields::default();
    fields.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    fields.insert_number(ACCESS_CONTROL_MAX_AGE, MAX_AGE, "");
    if let Some(headers) = request.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        fields.insert_bytes(ACCESS_CONTROL_ALLOW_HEADERS, headers.as_bytes());
    }
    fields
}

/// Adds to a response that a page of an allowed origin may read it. Keys come in headers of the request, so that a
/// browser need not send credentials of its own.
pub(super) fn add_headers(
    cors: &CorsOrigins,
    request: &RequestHeader,
    response: &mut ResponseHeader,
) -> Result<()> {
    if let CorsOrigins::Listed(_) = cors {
        response.insert_header(VARY, HeaderValue::from_static("origin"))?;
    }
    if let Some(origin) = allowed_origin(cors, request) {
        response.insert_header(ACCESS_CONTROL_ALLOW_ORIGIN, origin)?;
        let all = HeaderValue::from_static("*");
        response.insert_header(ACCESS_CONTROL_EXPOSE_HEADERS, all)?;
    }
    Ok(())
}

/// The value of `access-control-allow-origin`, where a page of the request's origin may call the gateway.
fn allowed_origin(cors: &CorsOrigins, request: &RequestHeader) -> Option<HeaderValue> {
    let origin = request.headers.get(ORIGIN)?;
    match cors {
        CorsOrigins::Any => Some(HeaderValue::from_static("*")),
        CorsOrigins::Listed(origins) => {
            let mut origins = origins.iter();
            let is_listed = origins.any(|listed| listed.as_bytes() == origin.as_bytes());
            is_listed.then(|| origin.clone())
        }
    }
}

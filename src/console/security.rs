//! What every response of the console carries, and what no request gets past: foreign posts, large bodies.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use tower_http::csrf::{CsrfLayer, ProtectionError};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use super::state::Console;
use crate::config::ConsoleConfig;

/// Nothing but what the console serves itself; scripts only from its files.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
     require-trusted-types-for 'script'";

/// More than any form or JSON of the console needs, but the explorer's.
const BODY_LIMIT: usize = 64 << 10;

/// What the explorer takes may be three times as long in a form.
const EXPLORER_BODY_LIMIT: usize = 1 << 20;

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Two years, once a browser has seen https.
const TRANSPORT_SECURITY: &str = "max-age=63072000; includeSubDomains";

/// Adds the headers and the refusals to all routes.
pub fn protect(router: Router<Arc<Console>>, settings: &ConsoleConfig) -> Router<Arc<Console>> {
    let mut csrf = CsrfLayer::new();
    // A proxy may have replaced `Host`: the origin is that of the URL.
    match CsrfLayer::new().add_trusted_origin(&settings.public_url) {
        Ok(trusting) => csrf = trusting,
        Err(error) => log::error!("console.public_url is no origin: {error}"),
    }
    let mut router = router
        .layer(csrf.with_rejection_response(refuse_foreign))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(RequestBodyLimitLayer::new(EXPLORER_BODY_LIMIT))
        // Assets have a header of their own.
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ));
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        router = router.layer(SetResponseHeaderLayer::overriding(name, value));
    }
    if settings.is_https() {
        let value = HeaderValue::from_static(TRANSPORT_SECURITY);
        router = router.layer(SetResponseHeaderLayer::overriding(
            header::STRICT_TRANSPORT_SECURITY,
            value,
        ));
    }
    router
}

/// The limit for routes of the explorer, in place of that of all others.
pub fn explorer_limit() -> DefaultBodyLimit {
    DefaultBodyLimit::max(EXPLORER_BODY_LIMIT)
}

/// Another site has sent this with the browser of somebody who is signed in.
fn refuse_foreign(_: ProtectionError) -> Response<Body> {
    let text = "This request comes from another site and is refused. Open the console itself and try again.\n";
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

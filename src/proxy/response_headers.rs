//! The headers that the gateway adds to a response.

use std::time::Instant;

use http::{HeaderMap, HeaderName};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;

use super::context::RequestContext;
use super::{billing, losses};
use crate::formats::HeaderFields;
use crate::translate::ResponseMode;

// Made once: for every response, their letters would be looked at anew.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const UPSTREAM: HeaderName = HeaderName::from_static("x-omniglot-upstream");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-omniglot-attempts");

/// Adds all headers of the gateway to the response of an upstream.
pub(super) fn add(header: &mut ResponseHeader, ctx: &mut RequestContext) -> Result<()> {
    let mut fields = HeaderFields::default();
    add_request_id(ctx, &mut fields);
    add_upstream(ctx, &mut fields);
    if !ctx.attempt.losses.0.is_empty() {
        losses::add_headers(ctx, &mut fields);
    }
    add_rate_limits(ctx, &mut fields);
    let translator = ctx.response.translator.as_ref();
    if translator.is_some_and(|translator| translator.mode() == ResponseMode::Json) {
        billing::add_headers(ctx, &mut fields);
    }
    // Through the parts: pingora's own insertion parses every name anew.
    let (empty, ()) = http::Response::new(()).into_parts();
    let mut parts: http::response::Parts = std::mem::replace(header, empty.into()).into();
    put(fields, &mut parts.headers)?;
    *header = parts.into();
    Ok(())
}

pub(super) fn put(fields: HeaderFields, headers: &mut HeaderMap) -> Result<()> {
    fields.insert_into(headers).map_err(|error| {
        Error::because(
            ErrorType::InvalidHTTPHeader,
            "a header of the gateway",
            error,
        )
    })
}

/// The request id under our own name, and under the one that the SDKs of the client's format read.
pub(super) fn add_request_id(ctx: &RequestContext, fields: &mut HeaderFields) {
    let id = ctx.client.request_id().as_bytes();
    if let Some(name) = ctx.client.codec().request_id_header() {
        fields.insert_bytes(name, id);
    }
    fields.insert_bytes(REQUEST_ID, id);
}

/// Which upstream answered, and after how many attempts.
pub(super) fn add_upstream(ctx: &RequestContext, fields: &mut HeaderFields) {
    fields.insert_bytes(UPSTREAM, ctx.route.upstream_name().as_bytes());
    fields.insert_number(ATTEMPTS, ctx.route.tried() as u64, "");
}

/// What is left of the key's limits, under the names of the client's format.
pub(super) fn add_rate_limits(ctx: &RequestContext, fields: &mut HeaderFields) {
    if let Some(key) = ctx.client.key().filter(|key| key.is_limited()) {
        let allowance = key.limiter.rate_limit_status(&key.limits, Instant::now());
        ctx.client.codec().encode_rate_limits(&allowance, fields);
    }
}

//! The response to the client: the headers that the gateway adds, what a translation has lost, and
//! writing within the limit of the client's silence.

use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use pingora_core::protocols::http::ServerSession;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;

use super::billing::settlement;
use super::context::RequestContext;
use super::context::loss_paths::loss_paths;
use super::cors;
use super::timer::within;
use crate::formats::HeaderFields;
use crate::model::Action;
use crate::translate::ResponseMode;

// Made once: for every response, their letters would be looked at anew.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const UPSTREAM: HeaderName = HeaderName::from_static("x-omniglot-upstream");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-omniglot-attempts");
const DROPPED: HeaderName = HeaderName::from_static("x-omniglot-dropped");
const ADJUSTED: HeaderName = HeaderName::from_static("x-omniglot-adjusted");

/// How much a client must take within the write timeout: long chunks go out in several writes, so
/// that the limit is one of silence, not of size.
const WRITE_CHUNK: usize = 256 << 10;

/// Adds all headers of the gateway to the response of an upstream.
pub(super) fn add_headers(header: &mut ResponseHeader, ctx: &mut RequestContext) -> Result<()> {
    let mut fields = HeaderFields::default();
    add_request_id(ctx, &mut fields);
    add_upstream(ctx, &mut fields);
    if !ctx.attempt.losses.0.is_empty() {
        add_losses(ctx, &mut fields);
    }
    add_rate_limits(ctx, &mut fields);
    let translator = ctx.response.translator.as_ref();
    if translator.is_some_and(|translator| translator.mode() == ResponseMode::Json) {
        settlement::add_headers(ctx, &mut fields);
    }
    // Through the parts: pingora's own insertion parses every name anew.
    let (empty, ()) = http::Response::new(()).into_parts();
    let mut parts: http::response::Parts = std::mem::replace(header, empty.into()).into();
    insert_fields(fields, &mut parts.headers)?;
    *header = parts.into();
    Ok(())
}

pub(super) fn insert_fields(fields: HeaderFields, headers: &mut HeaderMap) -> Result<()> {
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

/// Adds the headers that name what the upstream's format could not express of the request.
pub(super) fn add_losses(ctx: &RequestContext, fields: &mut HeaderFields) {
    for (name, dropped) in [(DROPPED, true), (ADJUSTED, false)] {
        let of_kind = |action| (action == Action::Dropped) == dropped;
        let paths = loss_paths(ctx, &ctx.attempt.losses, of_kind);
        if !paths.is_empty() {
            fields.insert_bytes(name, paths.as_bytes());
        }
    }
}

/// Logs what the client's format could not express of the response: the headers speak of the
/// request alone. A part that says something else now may explain what a client does next; one that
/// is missing is common.
pub(super) fn log_losses(ctx: &mut RequestContext) {
    let Some(translator) = &mut ctx.response.translator else {
        return;
    };
    let losses = translator.take_losses();
    if losses.0.is_empty() {
        return;
    }
    if let Some(capture) = &mut ctx.capture {
        capture.note_response_losses(&losses);
    }
    let is_dropped = |action| action == Action::Dropped;
    let adjusted = losses.0.iter().any(|loss| !is_dropped(loss.action));
    let level = match adjusted {
        true => log::Level::Info,
        false => log::Level::Debug,
    };
    if log::log_enabled!(level) {
        log::log!(
            level,
            "{}: response of upstream {}: dropped [{}], adjusted [{}]",
            ctx.client.request_id(),
            ctx.route.upstream_name(),
            loss_paths(ctx, &losses, is_dropped),
            loss_paths(ctx, &losses, |action| !is_dropped(action)),
        );
    }
}

/// Writes the header of a response.
pub(super) async fn write_header(
    session: &mut ServerSession,
    ctx: &mut RequestContext,
    mut header: ResponseHeader,
) -> Result<()> {
    if let Some(cors) = &ctx.snapshot.server.cors {
        cors::add_headers(cors, session.req_header(), &mut header)?;
    }
    ctx.response
        .start(header.status.as_u16(), ctx.client.elapsed());
    if let Some(capture) = &mut ctx.capture {
        capture.note_client_header(&header);
    }
    ctx.response.set_writing(true);
    let limit = ctx.snapshot.server.timeouts.write_idle;
    let writing = pin!(session.write_response_header(Box::new(header)));
    let written = within(limit, writing).await;
    ctx.response.set_writing(false);
    written.unwrap_or_else(timed_out).map_err(Error::into_down)
}

/// Writes a chunk of a body, or the end of it.
pub(super) async fn write_body(
    session: &mut ServerSession,
    ctx: &mut RequestContext,
    chunk: Option<Bytes>,
    end: bool,
) -> Result<()> {
    settlement::before_chunk(ctx, end);
    let chunk = chunk.unwrap_or_default();
    ctx.response.count_sent(chunk.len());
    if let Some(capture) = &mut ctx.capture {
        capture.note_client_chunk(&chunk);
    }
    ctx.response.set_writing(true);
    let limit = ctx.snapshot.server.timeouts.write_idle;
    let written = write_all(session, limit, chunk, end).await;
    ctx.response.set_writing(false);
    ctx.response.touch();
    written
}

async fn write_all(
    session: &mut ServerSession,
    limit: Duration,
    mut rest: Bytes,
    end: bool,
) -> Result<()> {
    loop {
        let chunk = rest.split_to(rest.len().min(WRITE_CHUNK));
        let is_last = rest.is_empty();
        let writing = pin!(session.write_response_body(chunk, end && is_last));
        let written = within(limit, writing).await;
        written
            .unwrap_or_else(timed_out)
            .map_err(Error::into_down)?;
        if is_last {
            return Ok(());
        }
    }
}

fn timed_out() -> Result<()> {
    Error::e_explain(ErrorType::WriteTimedout, "the client takes nothing")
}

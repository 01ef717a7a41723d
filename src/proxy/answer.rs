//! Everything that is answered here: lists, the catalog, and errors in the client's format.

use std::pin::pin;
use std::time::{Duration, Instant};

use super::Session;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, UPGRADE};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use pingora_core::{Error, ErrorType, Result};

use super::context::RequestContext;
use super::entry::Entry;
use super::patience::within;
use super::receipt;
use super::{bill, outgoing};
use crate::catalog;
use crate::config;
use crate::formats::HeaderFields;
use crate::model::{ApiError, ApiErrorKind, truncated};
use crate::translate::ResponseMode;

/// An early answer must reach a client that is still sending: what it sends is thrown away this long.
const DRAIN_REQUEST: Duration = Duration::from_secs(10);

/// What a client must take within the limit of its silence.
const WRITE_PIECE: usize = 256 << 10;

/// A JSON document with its length; HTTP/1.1 and HTTP/2 alike.
pub(super) async fn json(
    session: &mut Session,
    exchange: &mut RequestContext,
    status: u16,
    body: Vec<u8>,
    extra: HeaderFields,
) -> Result<()> {
    let kind = HeaderValue::from_static("application/json");
    whole(session, exchange, (status, kind), body.into(), extra).await
}

/// An image that is kept here.
pub(super) async fn file(
    session: &mut Session,
    exchange: &mut RequestContext,
    mime: &'static str,
    body: Bytes,
) -> Result<()> {
    let kind = HeaderValue::from_static(mime);
    whole(
        session,
        exchange,
        (200, kind),
        body,
        HeaderFields::default(),
    )
    .await
}

async fn whole(
    session: &mut Session,
    exchange: &mut RequestContext,
    (status, kind): (u16, HeaderValue),
    body: Bytes,
    mut extra: HeaderFields,
) -> Result<()> {
    let mut header = head(StatusCode::from_u16(status).unwrap_or_default());
    let headers = &mut header.headers;
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CONTENT_LENGTH, body.len().into());
    identify(exchange, &mut extra);
    allowance(exchange, &mut extra);
    put(extra, headers)?;
    exchange.status = status;
    exchange.header_sent = true;
    exchange.note_first_byte();
    exchange.sent += body.len() as u64;
    session.set_close_on_response_before_downstream_finish(false);
    session.set_total_drain_timeout(Some(DRAIN_REQUEST));
    exchange.writing = true;
    let limit = exchange.snapshot.server.timeouts.write_idle;
    let written = match begin(session, limit, header).await {
        Ok(()) => deliver(session, limit, body, true).await,
        unwritten => unwritten,
    };
    exchange.writing = false;
    written?;
    if session.get_keepalive().is_none() && !session.is_http2() {
        // A connection that is closed while the client still sends takes the answer with it.
        // pingora throws the rest away only where the connection is kept; errors end it anyway.
        let _ = session.drain_request_body().await;
    }
    Ok(())
}

/// The header of a reply, for a client that takes it in time.
pub(super) async fn begin(session: &mut Session, limit: Duration, header: Parts) -> Result<()> {
    let header = Box::new(header.into());
    let written = within(limit, pin!(session.write_response_header(header))).await;
    written.unwrap_or_else(too_slow).map_err(Error::into_down)
}

/// A piece of its body, or the end of it. A long one goes out in several, so that the limit is one
/// of silence, not of size.
pub(super) async fn deliver(
    session: &mut Session,
    limit: Duration,
    mut rest: Bytes,
    end: bool,
) -> Result<()> {
    loop {
        let piece = rest.split_to(rest.len().min(WRITE_PIECE));
        let last = rest.is_empty();
        let writing = pin!(session.write_response_body(piece, end && last));
        let written = within(limit, writing).await;
        written.unwrap_or_else(too_slow).map_err(Error::into_down)?;
        if last {
            return Ok(());
        }
    }
}

fn too_slow() -> Result<()> {
    Error::e_explain(ErrorType::WriteTimedout, "the client takes nothing")
}

/// An error, as the status and body of the client's format; inside the stream once that has begun.
pub(super) async fn api_error(
    session: &mut Session,
    exchange: &mut RequestContext,
    api_error: &ApiError,
) -> Result<()> {
    if exchange.header_sent {
        let last = exchange.reply.as_mut().map(|reply| reply.cut(api_error));
        let last = last.unwrap_or_default();
        receipt::before_piece(exchange, true);
        exchange.sent += last.len() as u64;
        let limit = exchange.snapshot.server.timeouts.write_idle;
        return deliver(session, limit, last, true).await;
    }
    let codec = exchange.format.codec();
    let (status, body) = codec.encode_error(api_error, &exchange.request_id);
    let mut extra = HeaderFields::default();
    if let Some(delay) = api_error.retry_after {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        extra.measure(RETRY_AFTER, seconds, "");
    }
    if api_error.status == 426 {
        extra.say(UPGRADE, "HTTP/1.1");
    } else if let Some(allowed) = &api_error.allowed {
        extra.say(ALLOW, &**allowed);
    }
    if exchange.tried > 0 {
        provenance(exchange, &mut extra);
        outgoing::lost(exchange, &mut extra);
    }
    json(session, exchange, status, body, extra).await
}

/// Room for all that is ever said there.
const HEADERS: usize = 24;

// Made once: for every reply, their letters would be looked at anew.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const UPSTREAM: HeaderName = HeaderName::from_static("x-omniglot-upstream");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-omniglot-attempts");

/// A header without fields. Those that are put into it are known by name, which pingora's own
/// would read anew each time.
pub(super) fn head(status: StatusCode) -> Parts {
    let (mut head, ()) = http::Response::new(()).into_parts();
    head.status = status;
    head.headers.reserve(HEADERS);
    head
}

/// What a reply's header says beside its kind and length.
pub(super) fn dress(exchange: &mut RequestContext, headers: &mut HeaderMap) -> Result<()> {
    let mut fields = HeaderFields::default();
    identify(exchange, &mut fields);
    provenance(exchange, &mut fields);
    if !exchange.losses.0.is_empty() {
        outgoing::lost(exchange, &mut fields);
    }
    allowance(exchange, &mut fields);
    let reply = exchange.reply.as_ref().map(|reply| reply.kind());
    if reply == Some(ResponseMode::Whole) {
        bill::headers(exchange, &mut fields);
    }
    put(fields, headers)
}

fn put(fields: HeaderFields, headers: &mut HeaderMap) -> Result<()> {
    fields
        .put_into(headers)
        .map_err(|error| Error::because(ErrorType::InvalidHTTPHeader, "a value of our own", error))
}

/// Under our own name, and under the one that the SDKs of the client's format look for.
fn identify(exchange: &RequestContext, fields: &mut HeaderFields) {
    let id = exchange.request_id.as_bytes();
    if let Some(theirs) = exchange.format.codec().request_id_header() {
        fields.spell(theirs, id);
    }
    fields.spell(REQUEST_ID, id);
}

/// Who answered, and after how many attempts.
pub(super) fn provenance(exchange: &RequestContext, fields: &mut HeaderFields) {
    fields.spell(UPSTREAM, exchange.upstream_name().as_bytes());
    fields.measure(ATTEMPTS, exchange.tried as u64, "");
}

/// What the key may still ask for, in the words of the client's format.
fn allowance(exchange: &RequestContext, fields: &mut HeaderFields) {
    if let Some(key) = exchange.key.as_ref().filter(|key| key.is_limited()) {
        let allowance = key.limiter.rate_limit_status(&key.limits, Instant::now());
        let codec = exchange.format.codec();
        codec.allowance_headers(&allowance, fields);
    }
}

/// The answer to what needs no model.
pub(super) fn listing(
    exchange: &RequestContext,
    entry: &Entry,
    query: Option<&str>,
) -> std::result::Result<Vec<u8>, ApiError> {
    let key = exchange.key.as_ref();
    let visible: Vec<&config::ModelConfig> = exchange
        .snapshot
        .ordered_models
        .iter()
        .map(|model| &model.settings)
        .filter(|model| key.is_none_or(|key| key.allows(&model.id)))
        .collect();
    match entry {
        Entry::Catalog => catalog::public_page(&visible, query),
        Entry::Models(shape) => catalog::list(*shape, &visible, query),
        Entry::Model(shape, id) => visible
            .into_iter()
            .find(|model| model.id == *id)
            .map(|model| catalog::single(*shape, model))
            .ok_or_else(|| unknown_model(id)),
        Entry::Call { .. } | Entry::Kept(..) | Entry::Tasks(_) | Entry::File(_) => {
            Err(ApiError::new(ApiErrorKind::Internal, "this is no list"))
        }
    }
}

pub(super) fn unknown_model(id: &str) -> ApiError {
    let id = truncated(id);
    let message = format!("the model `{id}` does not exist; GET /v1/models lists those that do");
    ApiError::new(ApiErrorKind::NotFound, message).at("model")
}

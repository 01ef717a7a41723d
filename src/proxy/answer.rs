//! Everything that is answered here: lists, the catalog, and faults in the client's format.

use std::time::{Duration, Instant};

use super::Session;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use pingora_core::{Error, ErrorType, Result};

use super::entry::Entry;
use super::exchange::Exchange;
use super::receipt;
use super::{bill, outgoing};
use crate::catalog;
use crate::config;
use crate::model::{Fault, FaultKind, shortened};
use crate::translate::ReplyKind;

/// An early answer must reach a client that is still sending: what it sends is thrown away this long.
const DRAIN_REQUEST: Duration = Duration::from_secs(10);

/// A JSON document with its length; HTTP/1.1 and HTTP/2 alike.
pub(super) async fn json(
    session: &mut Session,
    exchange: &mut Exchange,
    status: u16,
    body: Vec<u8>,
    extra: &[(&'static str, String)],
) -> Result<()> {
    let kind = HeaderValue::from_static("application/json");
    whole(session, exchange, (status, kind), body.into(), extra).await
}

/// A picture that is kept here.
pub(super) async fn file(
    session: &mut Session,
    exchange: &mut Exchange,
    mime: &'static str,
    body: Bytes,
) -> Result<()> {
    let kind = HeaderValue::from_static(mime);
    whole(session, exchange, (200, kind), body, &[]).await
}

async fn whole(
    session: &mut Session,
    exchange: &mut Exchange,
    (status, kind): (u16, HeaderValue),
    body: Bytes,
    extra: &[(&'static str, String)],
) -> Result<()> {
    let mut header = head(StatusCode::from_u16(status).unwrap_or_default());
    let headers = &mut header.headers;
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CONTENT_LENGTH, body.len().into());
    put_request_id(exchange, headers)?;
    put(headers, extra.iter().cloned())?;
    put(headers, allowance(exchange))?;
    exchange.status = status;
    exchange.header_sent = true;
    exchange.note_first_byte();
    exchange.sent += body.len() as u64;
    session.set_write_timeout(Some(exchange.snapshot.server.timeouts.write_idle));
    session.set_close_on_response_before_downstream_finish(false);
    session.set_total_drain_timeout(Some(DRAIN_REQUEST));
    exchange.writing = true;
    let written = async {
        let header = Box::new(header.into());
        session.write_response_header(header).await?;
        session.write_response_body(body, true).await
    };
    let written = written.await;
    exchange.writing = false;
    written.map_err(|error| error.into_down())?;
    if session.get_keepalive().is_none() && !session.is_http2() {
        // A connection that is closed while the client still sends takes the answer with it.
        // pingora throws the rest away only where the connection is kept; errors end it anyway.
        let _ = session.drain_request_body().await;
    }
    Ok(())
}

/// A fault, as the status and body of the client's format; inside the stream once that has begun.
pub(super) async fn fault(
    session: &mut Session,
    exchange: &mut Exchange,
    fault: &Fault,
) -> Result<()> {
    if exchange.header_sent {
        let last = exchange.reply.as_mut().map(|reply| reply.cut(fault));
        let last = last.unwrap_or_default();
        receipt::before_piece(exchange, true);
        exchange.sent += last.len() as u64;
        return session.write_response_body(last, true).await;
    }
    let codec = exchange.format.codec();
    let (status, body) = codec.encode_error(fault, &exchange.request_id);
    let mut extra = Vec::new();
    if let Some(delay) = fault.retry_after {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        extra.push(("retry-after", seconds.to_string()));
    }
    if fault.status == 426 {
        extra.push(("upgrade", "HTTP/1.1".to_owned()));
    } else if fault.kind == FaultKind::MethodNotAllowed {
        extra.push(("allow", fault.param.clone().unwrap_or_default()));
    }
    if exchange.tried > 0 {
        extra.extend(provenance(exchange));
        extra.extend(outgoing::lost(exchange));
    }
    json(session, exchange, status, body, &extra).await
}

/// Room for all that is ever said there.
const HEADERS: usize = 12;

const UPSTREAM_NAME: &str = "x-omniglot-upstream";
const ATTEMPTS_NAME: &str = "x-omniglot-attempts";

// Made once: for every reply, their letters would be looked at anew.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const UPSTREAM: HeaderName = HeaderName::from_static(UPSTREAM_NAME);
const ATTEMPTS: HeaderName = HeaderName::from_static(ATTEMPTS_NAME);

/// A header without fields. Those that are put into it are known by name, which pingora's own
/// would read anew each time.
pub(super) fn head(status: StatusCode) -> Parts {
    let (mut head, ()) = http::Response::new(()).into_parts();
    head.status = status;
    head.headers.reserve(HEADERS);
    head
}

fn put(
    headers: &mut HeaderMap,
    fields: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<()> {
    for (name, text) in fields {
        headers.insert(HeaderName::from_static(name), value(text)?);
    }
    Ok(())
}

fn value<T>(text: T) -> Result<HeaderValue>
where
    HeaderValue: TryFrom<T, Error: Into<http::Error>>,
{
    HeaderValue::try_from(text).map_err(|error| {
        let error: http::Error = error.into();
        Error::because(ErrorType::InvalidHTTPHeader, "a value of our own", error)
    })
}

/// What a reply's header says beside its kind and length.
pub(super) fn dress(exchange: &mut Exchange, headers: &mut HeaderMap) -> Result<()> {
    put_request_id(exchange, headers)?;
    headers.insert(UPSTREAM, value(exchange.upstream_name())?);
    headers.insert(ATTEMPTS, exchange.tried.into());
    if !exchange.losses.0.is_empty() {
        put(headers, outgoing::lost(exchange))?;
    }
    put(headers, allowance(exchange))?;
    let reply = exchange.reply.as_ref().map(|reply| reply.kind());
    if reply == Some(ReplyKind::Whole) {
        put(headers, bill::headers(exchange))?;
    }
    Ok(())
}

/// Under our own name, and under the one that the SDKs of the client's format look for.
fn put_request_id(exchange: &Exchange, headers: &mut HeaderMap) -> Result<()> {
    let id = value(exchange.request_id.as_str())?;
    if let Some(theirs) = exchange.format.codec().request_id_header() {
        headers.insert(HeaderName::from_static(theirs), id.clone());
    }
    headers.insert(REQUEST_ID, id);
    Ok(())
}

/// Who answered, and after how many attempts.
pub(super) fn provenance(exchange: &Exchange) -> [(&'static str, String); 2] {
    [
        (UPSTREAM_NAME, exchange.upstream_name().to_owned()),
        (ATTEMPTS_NAME, exchange.tried.to_string()),
    ]
}

/// What the key may still ask for, in the words of the client's format.
pub(super) fn allowance(exchange: &Exchange) -> Vec<(&'static str, String)> {
    let Some(key) = exchange.key.as_ref().filter(|key| key.is_limited()) else {
        return Vec::new();
    };
    let allowance = key.used.allowance(&key.limits, Instant::now());
    exchange.format.codec().allowance_headers(&allowance)
}

/// The answer to what needs no model.
pub(super) fn listing(
    exchange: &Exchange,
    entry: &Entry,
    query: Option<&str>,
) -> std::result::Result<Vec<u8>, Fault> {
    let key = exchange.key.as_ref();
    let visible: Vec<&config::Model> = exchange
        .snapshot
        .listed
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
            Err(Fault::new(FaultKind::Internal, "this is no list"))
        }
    }
}

pub(super) fn unknown_model(id: &str) -> Fault {
    let id = shortened(id);
    let message = format!("the model `{id}` does not exist; GET /v1/models lists those that do");
    Fault::new(FaultKind::NotFound, message).at("model")
}

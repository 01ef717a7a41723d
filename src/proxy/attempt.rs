//! One attempt at one upstream: the request it gets, and what its failure means.

use std::borrow::Cow;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use percent_encoding::percent_decode_str;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;
use std::net::SocketAddr;

use super::context::RequestContext;
use super::head::Head;
use crate::access::KEY_PARAMETER;
use crate::config::UpstreamTimeouts;
use crate::metrics::FailureCause;
use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::{Attempt, key_hash};

pub(super) const OUR_NAME: &str = concat!("omniglot/", env!("CARGO_PKG_VERSION"));

/// The same upstream at another of its addresses, when this one cannot be reached at all.
pub(super) fn elsewhere(exchange: &mut RequestContext, error: &Error) -> Option<SocketAddr> {
    use ErrorType::*;
    let unreachable = matches!(
        error.etype(),
        ConnectRefused | ConnectNoRoute | ConnectTimedout | ConnectError | SocketError
    );
    let address = exchange.other_addresses.pop().filter(|_| unreachable)?;
    let attempt = exchange.attempt()?;
    let name = &attempt.upstream.name;
    log::info!("upstream {name}: {error}; trying {address}");
    Some(address)
}

/// The header of a request for an attempt, whose body is so long.
pub(super) fn request(
    exchange: &RequestContext,
    attempt: &Attempt,
    client: &RequestHeader,
    length: usize,
) -> Result<Head> {
    let target = target(exchange, attempt, client.uri.query())?;
    let mut head = Head::new(Method::POST, attempt.upstream.clone(), target);
    let same_format = attempt.upstream.format == exchange.format;
    head.set(CONTENT_LENGTH, length.into());
    let own = same_format.then_some(&exchange.body[..]);
    add_fields(&mut head, &client.headers, attempt, own)?;
    Ok(head)
}

fn target(exchange: &RequestContext, attempt: &Attempt, query: Option<&str>) -> Result<String> {
    let wanted = exchange.wanted.as_ref().ok_or_else(no_request)?;
    let codec = attempt.upstream.format.codec();
    let base = &attempt.upstream.base;
    let same = attempt.upstream.format == exchange.format;
    let mut target = base.prefix.clone();
    let (operation, query) = if same {
        let key = exchange.key.as_ref().map(|key| key.hash());
        (
            wanted.operation,
            query.and_then(|query| without_key(query, key)),
        )
    } else {
        let query = codec.upstream_query(wanted.stream);
        (exchange.operation, query.map(str::to_owned))
    };
    target.push_str(&codec.upstream_path(operation, &attempt.model));
    if let Some(query) = query {
        target.push('?');
        target.push_str(&query);
    }
    Ok(target)
}

/// Only what is named here goes on: a client's key cannot leak by being forgotten.
fn add_fields(
    head: &mut Head,
    client: &HeaderMap,
    attempt: &Attempt,
    own: Option<&[u8]>,
) -> Result<()> {
    let upstream = &attempt.upstream;
    let configured = |name: &HeaderName| upstream.headers.iter().any(|(known, _)| known == name);
    let codec = upstream.format.codec();
    // What was translated is JSON; only the client's own bytes can be a form.
    match codec.content_type(own.unwrap_or_default()) {
        Cow::Borrowed(_) if head.has(&CONTENT_TYPE) => {}
        Cow::Borrowed(json) => head.add(CONTENT_TYPE, HeaderValue::from_static(json)),
        Cow::Owned(form) => {
            let form = HeaderValue::try_from(form);
            let form = form.map_err(|error| {
                Error::because(ErrorType::InvalidHTTPHeader, "the type of a form", error)
            })?;
            head.set(CONTENT_TYPE, form);
        }
    }
    if own.is_some() {
        for name in codec.own_headers().iter().filter(|name| !configured(name)) {
            for value in client.get_all(name) {
                head.add(name.clone(), value.clone());
            }
        }
    } else if let Some((name, value)) = codec.standing_header(&attempt.settings.capabilities)
        && !configured(&name)
    {
        head.add(name, HeaderValue::from_static(value));
    }
    Ok(())
}

/// The client's query goes through, but for the key that may stand in it, under whatever name.
fn without_key(query: &str, key: Option<[u8; 32]>) -> Option<String> {
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = percent_decode_str(name).decode_utf8_lossy();
            let value: Cow<'_, [u8]> = percent_decode_str(value).into();
            !pair.is_empty() && name != KEY_PARAMETER && Some(key_hash(&value)) != key
        })
        .collect();
    (!kept.is_empty()).then(|| kept.join("&"))
}

/// What an error on the way to, or from, an upstream means; details stay in the log.
pub(super) fn meaning(error: &Error, timeouts: &UpstreamTimeouts) -> (ApiError, FailureCause) {
    use ErrorType::*;
    let timeout = |message: String| {
        (
            ApiError::new(ApiErrorKind::Timeout, message),
            FailureCause::Timeout,
        )
    };
    match error.etype() {
        ConnectTimedout | TLSHandshakeTimedout => timeout(format!(
            "the upstream did not accept a connection within {:?}",
            timeouts.connect
        )),
        ReadTimedout => timeout(format!(
            "the upstream was silent for too long (first_byte {}, idle {})",
            shown(timeouts.first_byte),
            shown(timeouts.idle)
        )),
        Custom(super::retry::TOO_LATE) => timeout("the upstream took too long".to_owned()),
        WriteTimedout => timeout("the upstream did not take the request in time".to_owned()),
        TLSHandshakeFailure | InvalidCert | HandshakeError => (
            ApiError::bad_gateway("no secure connection to the upstream could be made"),
            FailureCause::Tls,
        ),
        ConnectRefused | ConnectNoRoute | ConnectError | BindError | ConnectProxyFailure
        | SocketError => (
            ApiError::bad_gateway("the upstream cannot be reached"),
            FailureCause::Connect,
        ),
        InvalidHTTPHeader => (
            ApiError::bad_gateway("the upstream's reply cannot be read"),
            FailureCause::Malformed,
        ),
        _ => (
            ApiError::bad_gateway("the connection to the upstream broke"),
            FailureCause::Reset,
        ),
    }
}

fn shown(timeout: Option<Duration>) -> String {
    timeout.map_or_else(|| "off".to_owned(), |timeout| format!("{timeout:?}"))
}

fn no_request() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "no request has been read")
}

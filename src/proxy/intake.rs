//! The client's body, read under the limit and kept so that every attempt can send it again.

use std::pin::pin;
use std::time::Duration;

use super::Session;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use pingora_core::{Error, Result};

use super::context::RequestContext;
use super::patience::within;
use crate::model::{ApiError, ApiErrorKind, Format, truncated};
use crate::translate::Gathered;

/// What keeps a body from being read: an error to tell, or a client that is gone.
pub(super) enum Refused {
    ApiError(ApiError),
    Client(Box<Error>),
}

pub(super) async fn read(
    session: &mut Session,
    exchange: &mut RequestContext,
) -> std::result::Result<Bytes, Refused> {
    let limit = exchange.snapshot.server.body_limit;
    let length = length(session);
    if length.is_some_and(|length| length > limit as u64) {
        return Err(Refused::ApiError(too_large(limit)));
    }
    let takes_forms = exchange.format == Format::Images;
    right_type(session, takes_forms).map_err(Refused::ApiError)?;
    plain(session).map_err(Refused::ApiError)?;
    // Else pingora would set a timer for what has long arrived.
    session.set_read_timeout(None);
    if session.get_header(EXPECT).is_some() {
        // Else pingora takes the 100 for an early answer and closes the connection after the reply.
        session.set_close_on_response_before_downstream_finish(false);
        let written = session.write_continue_response().await;
        written.map_err(|error| Refused::Client(error.into_down()))?;
    }
    let timeouts = exchange.snapshot.server.timeouts;
    let reading = pin!(gather(session, exchange, length, limit));
    let read = within(timeouts.body, reading).await;
    read.unwrap_or_else(|| Err(Refused::ApiError(too_slow())))
}

async fn gather(
    session: &mut Session,
    exchange: &mut RequestContext,
    length: Option<u64>,
    limit: usize,
) -> std::result::Result<Bytes, Refused> {
    let idle = exchange.snapshot.server.timeouts.body_idle;
    let mut body = Gathered::expecting(length.map_or(0, |length| length as usize));
    while let Some(piece) = next(session, idle).await? {
        exchange.received += piece.len() as u64;
        if body.len() + piece.len() > limit {
            return Err(Refused::ApiError(too_large(limit)));
        }
        body.add(piece);
    }
    Ok(body.take())
}

async fn next(
    session: &mut Session,
    idle: Duration,
) -> std::result::Result<Option<Bytes>, Refused> {
    match within(idle, pin!(session.read_request_body())).await {
        Some(piece) => piece.map_err(|error| Refused::Client(error.into_down())),
        None => Err(Refused::ApiError(too_slow())),
    }
}

fn too_slow() -> ApiError {
    let mut api_error = ApiError::new(ApiErrorKind::Timeout, "the body did not arrive in time");
    api_error.status = 408;
    api_error
}

fn length(session: &Session) -> Option<u64> {
    let value = session.get_header(CONTENT_LENGTH)?;
    value.to_str().ok()?.trim().parse().ok()
}

fn right_type(session: &Session, takes_forms: bool) -> Result<(), ApiError> {
    let Some(value) = session.get_header(CONTENT_TYPE) else {
        return Ok(());
    };
    if value == "application/json" {
        return Ok(());
    }
    let mime = value.to_str().unwrap_or("").split(';').next().unwrap_or("");
    let mime = mime.trim().to_ascii_lowercase();
    if mime == "application/json" || (mime.starts_with("application/") && mime.ends_with("+json")) {
        return Ok(());
    }
    if takes_forms && mime == "multipart/form-data" {
        return Ok(());
    }
    let mut api_error = ApiError::invalid(format!(
        "the content type `{mime}` is not accepted here, send application/json"
    ));
    api_error.status = 415;
    Err(api_error)
}

/// What is small on the way could be anything once it is unpacked.
fn plain(session: &Session) -> Result<(), ApiError> {
    let coding = session.get_header(CONTENT_ENCODING);
    let coding = coding.map_or("identity", |value| value.to_str().unwrap_or("?").trim());
    if coding.is_empty() || coding.eq_ignore_ascii_case("identity") {
        return Ok(());
    }
    let coding = truncated(coding);
    let mut api_error = ApiError::invalid(format!(
        "the content encoding `{coding}` is not accepted here, send the body as it is"
    ));
    api_error.status = 415;
    Err(api_error)
}

fn too_large(limit: usize) -> ApiError {
    let message = format!("the body is larger than {limit} bytes (server.body_limit)");
    ApiError::new(ApiErrorKind::TooLarge, message)
}

//! Reads the client's body, bounded, and whole, so that every attempt can send it again.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use pingora_core::Error;
use pingora_core::protocols::http::ServerSession;

use crate::formats::Operation;
use crate::model::{ApiError, ApiErrorKind, Format, truncated};
use crate::proxy::connection::listener;
use crate::proxy::context::RequestContext;
use crate::proxy::request::request_framing;
use crate::proxy::timer::within;
use crate::runtime::{BodyMemoryShare, NoBodyMemory};
use crate::translate::BodyBuffer;

/// When a request that found no memory may be sent again: others are over soon.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Answers up to this size fit into the buffer of any connection, and are never refused.
const SMALL_ANSWER: usize = 16 << 10;

/// Why a body was not read.
enum BodyError {
    Invalid(ApiError),
    ClientGone(Box<Error>),
}

/// Reads the body of a request. How long the client takes for it is not the gateway's time.
pub(in crate::proxy) async fn receive(
    session: &mut ServerSession,
    ctx: &mut RequestContext,
    operation: Operation,
) -> Result<(), Box<Error>> {
    let before = ctx.client.elapsed();
    let body = match read(session, ctx, operation).await {
        Ok(body) => body,
        Err(BodyError::ClientGone(error)) => return Err(error),
        Err(BodyError::Invalid(api_error)) => return Err(ctx.set_error(api_error)),
    };
    if let Some(capture) = &mut ctx.capture {
        capture.note_client_body(&body);
    }
    let wait = ctx.client.elapsed().saturating_sub(before);
    ctx.response.add_wait(wait);
    ctx.route.body = body;
    Ok(())
}

/// Reads the whole body within its limits of size and time.
async fn read(
    session: &mut ServerSession,
    ctx: &mut RequestContext,
    operation: Operation,
) -> Result<Bytes, BodyError> {
    let limit = ctx.snapshot.server.body_limit;
    let length = content_length(session);
    if length.is_some_and(|length| length > limit as u64) {
        return Err(BodyError::Invalid(too_large(limit)));
    }
    let accepted = AcceptedBody::of(ctx.client.format(), operation);
    check_content_type(session, accepted).map_err(BodyError::Invalid)?;
    check_content_encoding(session).map_err(BodyError::Invalid)?;
    reserve(ctx, length.map_or(0, |length| length as usize))?;
    // pingora would set a timer for every read, also for what has long arrived.
    session.set_read_timeout(None);
    if session.get_header(EXPECT).is_some() {
        // pingora would take the 100 for an early answer and close the connection after the response.
        session.set_close_on_response_before_downstream_finish(false);
        let written = session.write_continue_response().await;
        written.map_err(|error| BodyError::ClientGone(error.into_down()))?;
    }
    let timeouts = ctx.snapshot.server.timeouts;
    let reading = pin!(read_chunks(session, ctx, length, limit));
    let read = within(timeouts.body, reading).await;
    read.unwrap_or_else(|| Err(BodyError::Invalid(too_slow())))
}

async fn read_chunks(
    session: &mut ServerSession,
    ctx: &mut RequestContext,
    length: Option<u64>,
    limit: usize,
) -> Result<Bytes, BodyError> {
    let idle = ctx.snapshot.server.timeouts.body_idle;
    let mut body = BodyBuffer::with_expected_length(length.map_or(0, |length| length as usize));
    while let Some(chunk) = next_chunk(session, idle).await? {
        ctx.client.count_received(chunk.len());
        if body.len() + chunk.len() > limit {
            return Err(BodyError::Invalid(too_large(limit)));
        }
        reserve(ctx, body.len() + chunk.len())?;
        body.push(chunk);
    }
    Ok(body.take())
}

/// Counts the memory of the body among that of all bodies.
fn reserve(ctx: &mut RequestContext, bytes: usize) -> Result<(), BodyError> {
    let limit = ctx.snapshot.server.body_memory;
    count_memory(&mut ctx.route.body_memory, bytes, limit).map_err(BodyError::Invalid)
}

/// Counts a request of this size among the memory of all bodies, which is limited.
pub(in crate::proxy) fn count_memory(
    memory: &mut BodyMemoryShare,
    bytes: usize,
    limit: usize,
) -> Result<(), ApiError> {
    let counted = memory.grow_to(bytes, limit);
    counted.map_err(|reason| no_memory(reason, limit))
}

/// Counts an answer of the gateway's own among the memory of all bodies, until the request ends.
pub(in crate::proxy) fn count_response(
    ctx: &mut RequestContext,
    bytes: usize,
) -> Result<(), ApiError> {
    let limit = ctx.snapshot.server.body_memory;
    count_response_in(&mut ctx.route.body_memory, bytes, limit)
}

/// The same for memory that was taken out of the context.
pub(in crate::proxy) fn count_response_in(
    memory: &mut BodyMemoryShare,
    bytes: usize,
    limit: usize,
) -> Result<(), ApiError> {
    if bytes <= SMALL_ANSWER {
        return Ok(());
    }
    let counted = memory.grow_response_to(bytes, limit);
    counted.map_err(|reason| no_memory(reason, limit))
}

/// The error for a body that finds no memory.
pub(in crate::proxy) fn no_memory(reason: NoBodyMemory, limit: usize) -> ApiError {
    let held = match reason {
        NoBodyMemory::Full => format!("as much as they may, {limit} bytes"),
        NoBodyMemory::KeyShare => {
            format!("as much as those of one API key may, half of {limit} bytes")
        }
    };
    let message = format!(
        "the requests in flight hold {held} (server.body_memory): send this one again later"
    );
    let mut api_error = ApiError::new(ApiErrorKind::Overloaded, message);
    api_error.retry_after = Some(RETRY_AFTER);
    api_error
}

async fn next_chunk(
    session: &mut ServerSession,
    idle: Duration,
) -> Result<Option<Bytes>, BodyError> {
    let read = within(idle, pin!(session.read_request_body())).await;
    let read = read.ok_or_else(|| BodyError::Invalid(too_slow()))?;
    read.map_err(|error| match listener::has_invalid_chunk() {
        true => BodyError::Invalid(request_framing::invalid_chunk(session)),
        false => BodyError::ClientGone(error.into_down()),
    })
}

fn too_slow() -> ApiError {
    let mut api_error = ApiError::new(ApiErrorKind::Timeout, "the body did not arrive in time");
    api_error.status = 408;
    api_error
}

fn content_length(session: &ServerSession) -> Option<u64> {
    let value = session.get_header(CONTENT_LENGTH)?;
    value.to_str().ok()?.trim().parse().ok()
}

/// What a body may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AcceptedBody {
    Json,
    JsonOrForm,
    Form,
}

impl AcceptedBody {
    const fn of(format: Format, operation: Operation) -> AcceptedBody {
        match (format, operation) {
            (Format::Images, _) => AcceptedBody::JsonOrForm,
            (_, Operation::Passthrough(endpoint)) if endpoint.takes_recording() => {
                AcceptedBody::Form
            }
            _ => AcceptedBody::Json,
        }
    }
}

/// Refuses a content type that is not accepted.
fn check_content_type(session: &ServerSession, accepted: AcceptedBody) -> Result<(), ApiError> {
    let Some(value) = session.get_header(CONTENT_TYPE) else {
        return Ok(());
    };
    let takes_json = accepted != AcceptedBody::Form;
    if takes_json && value == "application/json" {
        return Ok(());
    }
    let mime = value.to_str().unwrap_or("").split(';').next().unwrap_or("");
    let mime = mime.trim().to_ascii_lowercase();
    let is_json =
        mime == "application/json" || (mime.starts_with("application/") && mime.ends_with("+json"));
    let is_form = mime == "multipart/form-data";
    if (takes_json && is_json) || (accepted != AcceptedBody::Json && is_form) {
        return Ok(());
    }
    let usual = match takes_json {
        true => "application/json",
        false => "multipart/form-data",
    };
    let mime = truncated(&mime);
    let mut api_error = ApiError::invalid(format!(
        "the content type `{mime}` is not accepted here, send {usual}"
    ));
    api_error.status = 415;
    Err(api_error)
}

/// Refuses compressed bodies: a small one could expand to any size.
fn check_content_encoding(session: &ServerSession) -> Result<(), ApiError> {
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

//! Writes responses to the client, within the limit of its silence.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use pingora_core::protocols::http::ServerSession;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;

use super::billing;
use super::context::RequestContext;
use super::timer::within;

/// How much a client must take within the write timeout: long chunks go out in several writes, so
/// that the limit is one of silence, not of size.
const WRITE_CHUNK: usize = 256 << 10;

/// Writes the header of a response.
pub(super) async fn write_header(
    session: &mut ServerSession,
    ctx: &mut RequestContext,
    header: ResponseHeader,
) -> Result<()> {
    ctx.response
        .start(header.status.as_u16(), ctx.client.elapsed());
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
    billing::before_chunk(ctx, end);
    let chunk = chunk.unwrap_or_default();
    ctx.response.count_sent(chunk.len());
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

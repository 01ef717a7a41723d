//! A request on its way to an upstream, and the wait for its answer.

use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::client::HttpSession as Upstreaming;
use pingora_core::{Error, ErrorType, Result};
use tokio::io::AsyncWriteExt as _;

use super::connections::Line;
use super::head::Head;
use super::patience::{Bell, within};
use crate::config::UpstreamTimeouts;
use crate::json::ChunkedBytes;

/// A body is handed to HTTP/2 in pieces, so that the write timeout is one of silence, not of size.
const WRITE_PIECE: usize = 1 << 20;

/// A connection with the header of an answer.
pub(super) struct Answered {
    /// On the heap: it is large, and handed on from one step to the next.
    pub(super) upstream: Box<Upstreaming>,
    /// `false`: what is written next would be read as the rest of this request.
    pub(super) is_sent: bool,
}

/// A connection that has failed is closed.
pub(super) async fn send(
    line: Line,
    head: Head,
    body: ChunkedBytes,
    timeouts: &UpstreamTimeouts,
    bell: &mut Bell,
) -> Result<Answered> {
    let (mut upstream, written) = match line {
        Line::Http1(mut stream) => {
            let written = write_at_once(&mut stream, head.written()?, body, timeouts.idle).await;
            (Box::new(Line::Http1(stream).begin()), written)
        }
        line => {
            let mut upstream = Box::new(line.begin());
            upstream.set_write_timeout(timeouts.idle);
            let header = Box::new(head.into_map()?);
            upstream.write_request_header(header).await?;
            let written = write_in_pieces(&mut upstream, body).await;
            (upstream, written)
        }
    };
    // An upstream may answer before it has read everything, and stop reading then.
    let error = match (
        answered(&mut upstream, timeouts.first_byte, bell).await,
        written,
    ) {
        (Ok(()), written) => {
            let is_sent = written.is_ok();
            return Ok(Answered { upstream, is_sent });
        }
        (Err(_), Err(unwritten)) => unwritten,
        (Err(error), Ok(())) => error,
    };
    upstream.shutdown().await;
    Err(error)
}

/// Header and body of HTTP/1.1 in as few writes as the connection takes, commonly one. pingora
/// would make two of it at least, and those are what a small request costs most.
async fn write_at_once(
    stream: &mut Stream,
    header: BytesMut,
    body: ChunkedBytes,
    idle: Option<Duration>,
) -> Result<()> {
    let mut rest = header.chain(body);
    while rest.has_remaining() {
        let taken = written(idle, stream.write_buf(&mut rest)).await?;
        if taken == 0 {
            return Error::e_explain(ErrorType::WriteError, "the connection takes nothing");
        }
    }
    written(idle, stream.flush()).await
}

async fn written<T>(
    idle: Option<Duration>,
    writing: impl Future<Output = std::io::Result<T>>,
) -> Result<T> {
    let explain = |kind, error| Error::because(kind, "while writing the request", error);
    match within(idle, pin!(writing)).await {
        Some(written) => written.map_err(|error| explain(ErrorType::WriteError, error)),
        None => {
            let error = std::io::ErrorKind::TimedOut.into();
            Err(explain(ErrorType::WriteTimedout, error))
        }
    }
}

async fn write_in_pieces(upstream: &mut Upstreaming, mut body: ChunkedBytes) -> Result<()> {
    let mut next = body.next_chunk().unwrap_or_default();
    loop {
        let piece = next.split_to(next.len().min(WRITE_PIECE));
        if next.is_empty() {
            next = body.next_chunk().unwrap_or_default();
        }
        let end = next.is_empty();
        upstream.write_request_body(piece, end).await?;
        if end {
            return upstream.finish_request_body().await;
        }
    }
}

/// Waits for a header that is an answer. A timeout of the connection would begin again with every
/// byte of it, and with every 1xx before it: this one does not.
async fn answered(
    upstream: &mut Upstreaming,
    first_byte: Option<Duration>,
    bell: &mut Bell,
) -> Result<()> {
    let waiting = async {
        loop {
            upstream.read_response_header().await?;
            if !is_informational(upstream) {
                return Ok(());
            }
        }
    };
    let Some(limit) = first_byte else {
        return waiting.await;
    };
    tokio::select! {
        biased;
        answered = waiting => answered,
        () = bell.past(Instant::now() + limit) => {
            Error::e_explain(ErrorType::ReadTimedout, "no whole header in time")
        }
    }
}

fn is_informational(upstream: &Upstreaming) -> bool {
    upstream
        .response_header()
        .is_some_and(|header| header.status.is_informational())
}

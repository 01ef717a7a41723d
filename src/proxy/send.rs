//! A request on its way to an upstream, and the wait for its answer.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::client::HttpSession as Upstreaming;
use pingora_core::protocols::http::v1::client::http_req_header_to_wire;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;
use pingora_timeout::timeout;
use tokio::io::AsyncWriteExt as _;

use super::connections::Line;
use crate::config::UpstreamTimeouts;

/// A body is handed to HTTP/2 in pieces, so that the write timeout is one of silence, not of size.
const WRITE_PIECE: usize = 1 << 20;

/// The connection, with the header of an answer; one that has failed is closed.
pub(super) async fn send(
    line: Line,
    header: RequestHeader,
    body: Bytes,
    timeouts: &UpstreamTimeouts,
) -> Result<Upstreaming> {
    let (mut upstream, written) = match line {
        Line::Http1(mut stream) => {
            let written = write_at_once(&mut stream, &header, body, timeouts.idle).await;
            (Line::Http1(stream).begin(), written)
        }
        line => {
            let mut upstream = line.begin();
            upstream.set_write_timeout(timeouts.idle);
            upstream.write_request_header(Box::new(header)).await?;
            let written = write_in_pieces(&mut upstream, body).await;
            (upstream, written)
        }
    };
    // One that was used before still has the other.
    upstream.set_read_timeout(None);
    // An upstream may answer before it has read everything, and stop reading then.
    let error = match (answered(&mut upstream, timeouts.first_byte).await, written) {
        (Ok(()), _) => {
            // A header is no byte of the reply.
            upstream.set_read_timeout(timeouts.first_byte);
            return Ok(upstream);
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
    header: &RequestHeader,
    body: Bytes,
    idle: Option<Duration>,
) -> Result<()> {
    let Some(header) = http_req_header_to_wire(header) else {
        return Error::e_explain(ErrorType::InvalidHTTPHeader, "upstream address");
    };
    let mut rest = header.chain(body);
    while rest.has_remaining() {
        let written = within(idle, stream.write_buf(&mut rest)).await?;
        if written == 0 {
            return Error::e_explain(ErrorType::WriteError, "the connection takes nothing");
        }
    }
    within(idle, stream.flush()).await
}

async fn within<T>(
    limit: Option<Duration>,
    writing: impl Future<Output = std::io::Result<T>>,
) -> Result<T> {
    let written = match limit {
        Some(limit) => timeout(limit, writing).await.unwrap_or_else(|_| {
            let kind = std::io::ErrorKind::TimedOut;
            Err(kind.into())
        }),
        None => writing.await,
    };
    written.map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::TimedOut => ErrorType::WriteTimedout,
            _ => ErrorType::WriteError,
        };
        Error::because(kind, "while writing the request", error)
    })
}

async fn write_in_pieces(upstream: &mut Upstreaming, mut body: Bytes) -> Result<()> {
    while body.len() > WRITE_PIECE {
        let piece = body.split_to(WRITE_PIECE);
        upstream.write_request_body(piece, false).await?;
    }
    upstream.write_request_body(body, true).await?;
    upstream.finish_request_body().await
}

/// Waits for a header that is an answer. A timeout of the connection would begin again with every
/// byte of it, and with every 1xx before it: this one does not.
async fn answered(upstream: &mut Upstreaming, first_byte: Option<Duration>) -> Result<()> {
    let waiting = async {
        loop {
            upstream.read_response_header().await?;
            if !is_informational(upstream) {
                return Ok(());
            }
        }
    };
    match first_byte {
        Some(limit) => timeout(limit, waiting).await.unwrap_or_else(|_| {
            Error::e_explain(ErrorType::ReadTimedout, "no whole header in time")
        }),
        None => waiting.await,
    }
}

fn is_informational(upstream: &Upstreaming) -> bool {
    upstream
        .response_header()
        .is_some_and(|header| header.status.is_informational())
}

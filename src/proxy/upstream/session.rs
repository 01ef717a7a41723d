//! Sends a request to an upstream and waits for the header of its response.

use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::Uri;
use http::header::HOST;
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;
use tokio::io::AsyncWriteExt as _;

use super::pool::UpstreamConnection;
use crate::config::UpstreamTimeouts;
use crate::json::ChunkedBytes;
use crate::proxy::timer::{ReusableTimer, within};

/// A body is handed to HTTP/2 in chunks, so that the write timeout is one of silence, not of size.
const WRITE_CHUNK: usize = 1 << 20;

/// How many 1xx responses may come before the final one; an upstream that sends more has none to give.
const INFORMATIONAL_LIMIT: usize = 16;

/// About how long a header is, with the request line.
const HEADER_LENGTH: usize = 512;

/// A request for an upstream.
#[derive(Clone)]
pub(in crate::proxy) struct UpstreamRequest {
    pub(in crate::proxy) header: RequestHeader,
    /// The first chunk of the body, and the rest of it.
    pub(in crate::proxy) body: (Bytes, ChunkedBytes),
}

/// A connection on which the header of a response has arrived.
pub(in crate::proxy) struct UpstreamResponse {
    /// On the heap: it is large, and handed on from one step to the next.
    pub(in crate::proxy) session: Box<UpstreamSession>,
    /// `false`: what is written next would be read as the rest of this request.
    pub(in crate::proxy) is_sent: bool,
}

/// Sends a request and reads the header of its response; a connection that fails is closed.
pub(in crate::proxy) async fn send(
    connection: UpstreamConnection,
    peer: &HttpPeer,
    request: &UpstreamRequest,
    timeouts: &UpstreamTimeouts,
    timer: &mut ReusableTimer,
) -> Result<UpstreamResponse> {
    let (mut session, written) = match connection {
        UpstreamConnection::Http1(mut stream) => {
            let header = encode_http1_header(&request.header)?;
            let written = write_http1(&mut stream, header, request, timeouts.idle).await;
            let session = UpstreamConnection::Http1(stream).into_session();
            (Box::new(session), written)
        }
        connection => {
            let mut session = Box::new(connection.into_session());
            session.set_write_timeout(timeouts.idle);
            let header = http2_header(&request.header, peer)?;
            session.write_request_header(Box::new(header)).await?;
            let written = write_http2(&mut session, request).await;
            (session, written)
        }
    };
    // An upstream may answer before it has read everything, and stop reading then.
    let answered = read_header(&mut session, timeouts.first_byte, timer).await;
    let error = match (answered, written) {
        (Ok(()), written) => {
            let is_sent = written.is_ok();
            return Ok(UpstreamResponse { session, is_sent });
        }
        (Err(_), Err(unwritten)) => unwritten,
        (Err(error), Ok(())) => error,
    };
    session.shutdown().await;
    Err(error)
}

/// Header and body of HTTP/1.1 in as few writes as the connection takes, commonly one. pingora
/// would need two at least, and those are what a small request costs most.
async fn write_http1(
    stream: &mut Stream,
    header: BytesMut,
    request: &UpstreamRequest,
    idle: Option<Duration>,
) -> Result<()> {
    let (first, rest) = request.body.clone();
    let mut unwritten = header.chain(first).chain(rest);
    while unwritten.has_remaining() {
        let written = write_within(idle, stream.write_buf(&mut unwritten)).await?;
        if written == 0 {
            return Error::e_explain(ErrorType::WriteError, "the connection takes nothing");
        }
    }
    write_within(idle, stream.flush()).await
}

async fn write_within<T>(
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

async fn write_http2(session: &mut UpstreamSession, request: &UpstreamRequest) -> Result<()> {
    let (mut next, mut rest) = request.body.clone();
    loop {
        let chunk = next.split_to(next.len().min(WRITE_CHUNK));
        if next.is_empty() {
            next = rest.next_chunk().unwrap_or_default();
        }
        let end = next.is_empty();
        session.write_request_body(chunk, end).await?;
        if end {
            return session.finish_request_body().await;
        }
    }
}

fn encode_http1_header(header: &RequestHeader) -> Result<BytesMut> {
    let mut text = BytesMut::with_capacity(HEADER_LENGTH);
    let target = header.uri.path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    // Whatever ends a line or a word would be read as something else.
    if !target.bytes().all(|byte| byte > b' ' && byte != 0x7f) {
        return Error::e_explain(ErrorType::InvalidHTTPHeader, "upstream address");
    }
    for part in [header.method.as_str(), " ", target, " HTTP/1.1\r\n"] {
        text.put_slice(part.as_bytes());
    }
    for (name, value) in &header.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.put_slice(part);
        }
    }
    text.put_slice(b"\r\n");
    Ok(text)
}

/// HTTP/2 has scheme and authority in the URI, and no `host`.
fn http2_header(header: &RequestHeader, peer: &HttpPeer) -> Result<RequestHeader> {
    let mut parts = header.as_owned_parts();
    let authority = parts.headers.remove(HOST);
    let authority = authority.as_ref().map_or(&[][..], |host| host.as_bytes());
    let uri = Uri::builder()
        .scheme(if peer.is_tls() { "https" } else { "http" })
        .authority(authority)
        .path_and_query(
            parts
                .uri
                .path_and_query()
                .map_or("/", |target| target.as_str()),
        )
        .build();
    let invalid = |error| Error::because(ErrorType::InvalidHTTPHeader, "upstream address", error);
    (parts.uri, parts.version) = (uri.map_err(invalid)?, http::Version::HTTP_2);
    Ok(parts.into())
}

/// Waits for a final header. A timeout of the connection would begin again with every byte of it,
/// and with every 1xx before it: this one does not.
async fn read_header(
    session: &mut UpstreamSession,
    first_byte: Option<Duration>,
    timer: &mut ReusableTimer,
) -> Result<()> {
    let reading = async {
        for _ in 0..=INFORMATIONAL_LIMIT {
            session.read_response_header().await?;
            let header = session.response_header();
            if !header.is_some_and(|header| header.status.is_informational()) {
                return Ok(());
            }
        }
        let message = "more 1xx responses than a request needs";
        Error::e_explain(ErrorType::InvalidHTTPHeader, message)
    };
    let Some(limit) = first_byte else {
        return reading.await;
    };
    tokio::select! {
        biased;
        read = reading => read,
        () = timer.until(Instant::now() + limit) => {
            Error::e_explain(ErrorType::ReadTimedout, "no whole header in time")
        }
    }
}

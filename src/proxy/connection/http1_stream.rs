//! The stream of a connection of HTTP/1 as pingora reads it.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::{SslDigest, TlsRef};
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    Stream, TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http1_framing::{Http1Framing, ReadOutcome};

/// The framing of a connection, which its stream and its requests share. One of them uses it at a time.
#[derive(Debug, Default, Clone)]
pub(super) struct SharedFraming(Arc<Mutex<Http1Framing>>);

impl SharedFraming {
    pub(super) fn lock(&self) -> MutexGuard<'_, Http1Framing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what a client sends, but a header only when it is complete.
#[derive(Debug)]
pub(super) struct Http1Stream {
    stream: Stream,
    framing: SharedFraming,
}

impl Http1Stream {
    pub(super) fn new(stream: Stream, framing: SharedFraming) -> Http1Stream {
        Http1Stream { stream, framing }
    }
}

impl AsyncRead for Http1Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let Http1Stream { stream, framing } = &mut *self;
        let mut framing = framing.lock();
        while !framing.read_held(buf) {
            let before = buf.filled().len();
            ready!(Pin::new(&mut *stream).poll_read(cx, buf))?;
            match framing.note(&buf.filled()[before..]) {
                ReadOutcome::Pass => break,
                ReadOutcome::Hold | ReadOutcome::Release => buf.set_filled(before),
                ReadOutcome::InvalidChunk => {
                    let message = "the head of a chunk is invalid";
                    return Poll::Ready(Err(Error::new(ErrorKind::InvalidData, message)));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Http1Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Http1Stream {
    async fn shutdown(&mut self) {
        self.stream.shutdown().await;
    }
}

impl UniqueID for Http1Stream {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl Ssl for Http1Stream {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.stream.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.selected_alpn_proto()
    }
}

impl GetTimingDigest for Http1Stream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.stream.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.stream.get_write_pending_time()
    }
}

impl GetProxyDigest for Http1Stream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }

    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.stream.set_proxy_digest(digest);
    }
}

impl GetSocketDigest for Http1Stream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.stream.set_socket_digest(digest);
    }
}

/// What comes is looked at before.
impl Peek for Http1Stream {}

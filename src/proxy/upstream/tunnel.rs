//! Connects through an HTTP proxy, which opens a tunnel with CONNECT.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::connectors::L4Connect;
use pingora_core::protocols::l4::socket::SocketAddr;
use pingora_core::protocols::l4::stream::Stream;
use pingora_core::{Error, ErrorType, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::runtime::UpstreamProxy;

/// The longest header of a proxy's response.
const MAX_HEADER: usize = 16 << 10;

const HEADER_END: &[u8] = b"\r\n\r\n";

/// The tunnel to one upstream; pingora adds TLS on top of it.
#[derive(Debug)]
pub(super) struct Tunnel {
    pub(super) proxy: Arc<UpstreamProxy>,
    pub(super) connect_timeout: Duration,
}

#[async_trait]
impl L4Connect for Tunnel {
    async fn connect(&self, address: &SocketAddr) -> Result<Stream> {
        let opened = timeout(self.connect_timeout, self.open(address)).await;
        opened.unwrap_or_else(|_| {
            let name = &self.proxy.name;
            let message = format!("the proxy {name} opened no tunnel in time");
            Error::e_explain(ErrorType::ConnectTimedout, message)
        })
    }
}

impl Tunnel {
    async fn open(&self, address: &SocketAddr) -> Result<Stream> {
        let name = &self.proxy.name;
        let broken = |error: std::io::Error| {
            let message = format!("the connection to the proxy {name} broke");
            Error::because(ErrorType::ConnectProxyFailure, message, error)
        };
        let Some(address) = address.as_inet() else {
            let message = format!("the proxy {name} has no address");
            return Error::e_explain(ErrorType::ConnectError, message);
        };
        let connected = TcpStream::connect(address).await;
        let mut stream = connected.map_err(|error| {
            let kind = match error.kind() {
                ErrorKind::ConnectionRefused => ErrorType::ConnectRefused,
                ErrorKind::TimedOut => ErrorType::ConnectTimedout,
                _ => ErrorType::ConnectError,
            };
            let message = format!("the proxy {name} cannot be reached");
            Error::because(kind, message, error)
        })?;
        let request = &self.proxy.connect_request;
        stream.write_all(request).await.map_err(broken)?;
        let mut response = Vec::new();
        let end = loop {
            let is_closed = stream.read_buf(&mut response).await.map_err(broken)? == 0;
            if let Some(at) = memchr::memmem::find(&response, HEADER_END) {
                break at + HEADER_END.len();
            }
            if is_closed || response.len() > MAX_HEADER {
                return self.refused("sent no whole response to CONNECT");
            }
        };
        match status(&response) {
            Some(200..=299) if end == response.len() => Ok(stream.into()),
            // That would be from the upstream, which says nothing before it is asked.
            Some(200..=299) => self.refused("sent more than a header in response to CONNECT"),
            Some(status) => self.refused(&format!("refused the tunnel with status {status}")),
            None => self.refused("sent no HTTP response to CONNECT"),
        }
    }

    fn refused<T>(&self, reason: &str) -> Result<T> {
        let message = format!("the proxy {} {reason}", self.proxy.name);
        Error::e_explain(ErrorType::ConnectProxyFailure, message)
    }
}

/// The status of `HTTP/1.1 200 OK`.
fn status(response: &[u8]) -> Option<u16> {
    let line = response.strip_prefix(b"HTTP/1.")?;
    let digits = line.get(1..)?.strip_prefix(b" ")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

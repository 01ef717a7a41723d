//! Connects through an HTTP proxy, which opens a tunnel with CONNECT.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::connectors::L4Connect;
use pingora_core::protocols::l4::socket::SocketAddr;
use pingora_core::protocols::l4::stream::Stream;
use pingora_core::{Error, ErrorType, Result};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::runtime::{TunnelError, UpstreamProxy};

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
        match self.proxy.open_tunnel(&mut stream).await {
            Ok(()) => Ok(stream.into()),
            Err(TunnelError::Broken(error)) => Err(broken(error)),
            Err(TunnelError::Refused(reason)) => self.refused(&reason),
        }
    }

    fn refused<T>(&self, reason: &str) -> Result<T> {
        let message = format!("the proxy {} {reason}", self.proxy.name);
        Error::e_explain(ErrorType::ConnectProxyFailure, message)
    }
}

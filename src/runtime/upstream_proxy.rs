//! The proxy that an upstream is reached through.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::config::{BaseUrl, ProxyConfig, proxy_of_environment};

/// The longest header of a proxy's response.
const MAX_HEADER: usize = 16 << 10;

const HEADER_END: &[u8] = b"\r\n\r\n";

/// Why a proxy has opened no tunnel.
#[derive(Debug)]
pub enum TunnelError {
    Broken(std::io::Error),
    /// What the proxy did instead.
    Refused(String),
}

/// A proxy, and the request that opens a tunnel through it.
pub struct UpstreamProxy {
    pub host: String,
    pub port: u16,
    /// `HOST:PORT`, for messages.
    pub name: String,
    pub connect_request: Vec<u8>,
}

impl UpstreamProxy {
    pub(super) fn new(proxy: &ProxyConfig, base: &BaseUrl) -> UpstreamProxy {
        let target = match base.host.contains(':') {
            true => format!("[{}]:{}", base.host, base.port),
            false => format!("{}:{}", base.host, base.port),
        };
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n");
        if let Some(credentials) = &proxy.credentials {
            let credentials = STANDARD.encode(credentials);
            request += &format!("proxy-authorization: Basic {credentials}\r\n");
        }
        request += "\r\n";
        UpstreamProxy {
            host: proxy.host.clone(),
            port: proxy.port,
            name: proxy.to_string(),
            connect_request: request.into_bytes(),
        }
    }

    /// The proxy that the environment names for an address. `Err`: what it names is none.
    pub fn of_environment(base: &BaseUrl) -> Result<Option<UpstreamProxy>, String> {
        let proxy = proxy_of_environment(&|name| std::env::var(name).ok(), base)?;
        Ok(proxy.map(|proxy| UpstreamProxy::new(&proxy, base)))
    }

    /// Has the proxy open a tunnel, on a connection to it.
    pub async fn open_tunnel(&self, stream: &mut TcpStream) -> Result<(), TunnelError> {
        let refused = |reason: &str| Err(TunnelError::Refused(reason.to_owned()));
        let written = stream.write_all(&self.connect_request).await;
        written.map_err(TunnelError::Broken)?;
        let mut response = Vec::new();
        let end = loop {
            let read = stream.read_buf(&mut response).await;
            let is_closed = read.map_err(TunnelError::Broken)? == 0;
            if let Some(at) = memchr::memmem::find(&response, HEADER_END) {
                break at + HEADER_END.len();
            }
            if is_closed || response.len() > MAX_HEADER {
                return refused("sent no whole response to CONNECT");
            }
        };
        match status(&response) {
            Some(200..=299) if end == response.len() => Ok(()),
            // That would be from the upstream, which says nothing before it is asked.
            Some(200..=299) => refused("sent more than a header in response to CONNECT"),
            Some(status) => refused(&format!("refused the tunnel with status {status}")),
            None => refused("sent no HTTP response to CONNECT"),
        }
    }
}

/// The status of `HTTP/1.1 200 OK`.
fn status(response: &[u8]) -> Option<u16> {
    let line = response.strip_prefix(b"HTTP/1.")?;
    let digits = line.get(1..)?.strip_prefix(b" ")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Hides the request, which may hold credentials.
impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "UpstreamProxy({})", self.name)
    }
}

//! The proxy that an upstream is reached through.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::config::{BaseUrl, ProxyConfig};

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
}

/// Hides the request, which may hold credentials.
impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "UpstreamProxy({})", self.name)
    }
}

//! The settings of one entry of `upstreams`.

use std::fmt;
use std::time::Duration;

use super::auth::Auth;
use super::connection::{ProxyConfig, UpstreamTls};
use super::request_shape::RequestShape;
use crate::model::Format;

#[derive(Clone)]
pub struct UpstreamConfig {
    pub name: String,
    /// For clients of all formats that `other_formats` lacks.
    pub format: Format,
    pub base_url: BaseUrl,
    /// Further formats of the upstream, whose clients need no translation.
    pub other_formats: Vec<(Format, BaseUrl)>,
    pub auth: Option<Auth>,
    pub headers: Vec<(String, String)>,
    pub shape: RequestShape,
    pub timeouts: UpstreamTimeouts,
    pub protocol: Protocol,
    pub brand: String,
    /// Names and values as written, for models that do not set them; the formats interpret them.
    pub capabilities: Vec<(String, String)>,
    pub concurrency: ConcurrencyLimit,
    pub breaker: Option<Breaker>,
    pub health: Option<HealthCheck>,
    /// Absent: its list of models is not read.
    pub discover: Option<Discovery>,
    /// Absent: the certificates of the system.
    pub tls: Option<UpstreamTls>,
    /// The proxy of each base URL, in the order of [`UpstreamConfig::formats`].
    pub proxies: Vec<Option<ProxyConfig>>,
}

/// Hides header values, which may be credentials.
impl fmt::Debug for UpstreamConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("Upstream")
            .field("name", &self.name)
            .field("format", &self.format)
            .field("base_url", &self.base_url)
            .field("other_formats", &self.other_formats)
            .field("auth", &self.auth)
            .field("headers", &headers)
            .field("shape", &self.shape)
            .field("timeouts", &self.timeouts)
            .field("protocol", &self.protocol)
            .field("brand", &self.brand)
            .field("capabilities", &self.capabilities)
            .field("concurrency", &self.concurrency)
            .field("breaker", &self.breaker)
            .field("health", &self.health)
            .field("discover", &self.discover)
            .field("tls", &self.tls)
            .field("proxies", &self.proxies)
            .finish()
    }
}

impl UpstreamConfig {
    /// The formats that it speaks, the first one for clients of all others.
    pub fn formats(&self) -> impl Iterator<Item = Format> {
        let others = self.other_formats.iter().map(|(format, _)| *format);
        std::iter::once(self.format).chain(others)
    }
}

/// `https://host:port/prefix`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    pub tls: bool,
    /// A name or an address literal, IPv6 without brackets.
    pub host: String,
    pub port: u16,
    /// The value of the `host` header: the port only where it is not the default of the scheme.
    pub authority: String,
    /// Without a trailing slash; empty when the URL has no path.
    pub prefix: String,
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamTimeouts {
    pub connect: Duration,
    /// From the last byte of the request to the first of the response; absent: no limit.
    pub first_byte: Option<Duration>,
    /// Between two chunks of a response; absent: no limit.
    pub idle: Option<Duration>,
    /// From the start of an attempt to the last byte of its response; absent: no limit.
    pub total: Option<Duration>,
}

/// The concurrency limit of an upstream, and its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimit {
    /// Absent: no limit.
    pub max_in_flight: Option<u64>,
    pub queue: u64,
    pub queue_timeout: Duration,
}

/// The circuit breaker of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Consecutive failures that open it.
    pub failures: u32,
    /// The failure rate in percent that opens it.
    pub percent: u32,
    pub open_for: Duration,
}

/// A periodic health check of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// The path behind the base URL.
    pub path: String,
    pub interval: Duration,
    pub timeout: Duration,
}

/// How the models that an upstream lists are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    pub interval: Duration,
    /// Globs of the upstream's own names; empty: all of them.
    pub include: Vec<String>,
    /// Globs of names that are left out.
    pub exclude: Vec<String>,
    /// What clients write before a name.
    pub prefix: String,
}

/// The HTTP version for an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// As negotiated with ALPN under TLS; HTTP/1.1 without TLS.
    Auto,
    Http1,
    /// Always HTTP/2; without TLS with prior knowledge.
    Http2,
}

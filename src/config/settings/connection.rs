//! How an upstream is connected to: its certificates and its proxy.

use std::fmt;

use crate::config::problem::Position;

/// The TLS settings of an upstream, with what their files hold.
#[derive(Debug, Clone)]
pub struct UpstreamTls {
    /// The certificates that are trusted, as DER; empty: those of the system.
    pub ca: Vec<Vec<u8>>,
    /// Absent: none is sent.
    pub client: Option<ClientCertificate>,
    /// The name that is asked for and verified; absent: the host of the base URL.
    pub server_name: Option<String>,
    /// Where the config has them.
    pub position: Position,
}

/// A certificate for the upstream to verify, and its key, as DER.
#[derive(Clone)]
pub struct ClientCertificate {
    /// The certificate itself, then those that it was issued with.
    pub chain: Vec<Vec<u8>>,
    pub key: Vec<u8>,
}

/// Hides the key.
impl fmt::Debug for ClientCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter
            .debug_struct("ClientCertificate")
            .finish_non_exhaustive()
    }
}

/// An HTTP proxy that opens tunnels with CONNECT.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// A name or an address literal, IPv6 without brackets.
    pub host: String,
    pub port: u16,
    /// `USER:PASSWORD`.
    pub credentials: Option<String>,
}

impl fmt::Display for ProxyConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

/// Hides the credentials.
impl fmt::Debug for ProxyConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "ProxyConfig({self})")
    }
}

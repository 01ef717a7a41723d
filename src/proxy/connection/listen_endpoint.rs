//! The addresses that the gateway listens on, and the TLS handshakes of those that have TLS.
//!
//! pingora could make the handshakes too, but would allow a minute for each, and would know nothing of a connection that has to
//! make room for another one meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use pingora_core::Error;
use pingora_core::listeners::tls::{Acceptor, TlsSettings};
use pingora_core::protocols::Stream;
use pingora_core::protocols::l4::stream::Stream as TcpStream;
use tokio::time::timeout;

/// What the errors say of handshakes that a client breaks off.
const CLOSED_EARLY: [&str; 4] = [
    "handshake eof",
    "unexpected end of file",
    "Connection reset by peer",
    "Broken pipe",
];

/// An address that the gateway listens on.
pub struct ListenEndpoint {
    address: SocketAddr,
    tls: Option<Acceptor>,
}

impl ListenEndpoint {
    /// Has connections at this address begin with a TLS handshake, if there are settings for it.
    pub fn new(address: SocketAddr, tls: Option<TlsSettings>) -> ListenEndpoint {
        ListenEndpoint {
            address,
            tls: tls.map(TlsSettings::build),
        }
    }

    pub(super) const fn tls(&self) -> Option<&Acceptor> {
        self.tls.as_ref()
    }

    /// Whether a connection with this local address was accepted here.
    fn accepts(&self, local: SocketAddr) -> bool {
        let (own, is_same_family) = (self.address, self.address.is_ipv4() == local.is_ipv4());
        let is_same_host = own.ip().is_unspecified() || own.ip() == local.ip();
        own.port() == local.port() && is_same_family && is_same_host
    }
}

/// Finds the endpoint that has accepted a connection. pingora does not tell it where there are several.
pub(super) fn find<'e>(
    endpoints: &'e [ListenEndpoint],
    stream: &Stream,
) -> Option<&'e ListenEndpoint> {
    if let [only] = endpoints {
        return Some(only);
    }
    let digest = stream.get_socket_digest()?;
    let local = *digest.local_addr()?.as_inet()?;
    let found = endpoints.iter().find(|endpoint| endpoint.accepts(local));
    if found.is_none() {
        log::error!("a connection to {local} is closed: no `server.listen` has this address");
    }
    found
}

/// Makes the TLS handshake of a connection, which is closed where that fails or takes too long.
pub(super) async fn handshake(
    tls: &Acceptor,
    stream: Stream,
    peer: Option<SocketAddr>,
    limit: Duration,
) -> Option<Stream> {
    let stream = stream.into_any().downcast::<TcpStream>().ok()?;
    match timeout(limit, tls.tls_handshake(*stream)).await {
        Ok(Ok(stream)) => Some(Box::new(stream)),
        Ok(Err(error)) => {
            log_failure(&error, peer);
            None
        }
        Err(_) => {
            log::debug!("a TLS handshake took longer than {limit:?}");
            None
        }
    }
}

/// Says what the two sides did not agree on. A connection that was closed before is no news: the probes of load balancers do that.
fn log_failure(error: &Error, peer: Option<SocketAddr>) {
    // pingora keeps nothing of the cause but its text.
    let text = error.to_string();
    let level = match CLOSED_EARLY.iter().any(|words| text.contains(words)) {
        true => log::Level::Debug,
        false => log::Level::Warn,
    };
    let from = peer.map_or_else(|| "?".to_owned(), |peer| peer.to_string());
    log::log!(level, "a TLS handshake with {from} failed: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_found_by_the_local_address_of_a_connection() {
        let endpoint = |address: &str| ListenEndpoint::new(address.parse().expect("valid"), None);
        for (own, local, is_same) in [
            ("10.0.0.1:443", "10.0.0.1:443", true),
            ("10.0.0.1:443", "10.0.0.2:443", false),
            ("10.0.0.1:443", "10.0.0.1:80", false),
            ("0.0.0.0:443", "10.0.0.1:443", true),
            ("0.0.0.0:443", "10.0.0.1:80", false),
            ("0.0.0.0:443", "[::1]:443", false),
            ("[::]:443", "[::ffff:10.0.0.1]:443", true),
            ("[::1]:443", "[::1]:443", true),
        ] {
            let local = local.parse().expect("an address");
            assert_eq!(endpoint(own).accepts(local), is_same, "{own} {local}");
        }
    }
}

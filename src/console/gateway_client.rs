//! Asks the gateway of this process over its own listener, as any client does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::access::Keyring;
use crate::config::Listen;

/// It is this process: it answers at once, or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How the console reaches the gateway of its process.
#[derive(Clone)]
pub struct GatewayAccess {
    pub keyring: Arc<Keyring>,
    address: SocketAddr,
}

impl GatewayAccess {
    /// `None`: every listener has TLS, with a certificate for another name.
    pub fn new(keyring: Arc<Keyring>, listen: &[Listen]) -> Option<GatewayAccess> {
        let address = reachable(listen)?;
        Some(GatewayAccess { keyring, address })
    }

    /// Sends a JSON body with an API key. `None`: nobody listens there.
    pub(super) async fn post(
        &self,
        target: &str,
        secret: &str,
        body: Vec<u8>,
    ) -> Option<Response<Incoming>> {
        let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(self.address)).await;
        let stream = TokioIo::new(stream.ok()?.ok()?);
        let (mut sender, connection) = http1::handshake(stream).await.ok()?;
        // It ends with the response, or when nobody reads that any more.
        tokio::spawn(connection);
        let request = Request::post(target)
            .header(HOST, self.address.to_string())
            .header(USER_AGENT, "omniglot-console")
            .header(AUTHORIZATION, format!("Bearer {secret}"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)));
        sender.send_request(request.ok()?).await.ok()
    }
}

/// The first listener without TLS, as this machine reaches it.
fn reachable(listen: &[Listen]) -> Option<SocketAddr> {
    let mut plain = listen.iter().filter(|listen| listen.tls.is_none());
    let mut address = plain.next()?.addr;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_every_interface_is_reached_on_this_machine() {
        for (listen, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            let mut address: SocketAddr = listen.parse().expect("an address");
            let plain = Listen {
                addr: address,
                tls: None,
            };
            address = reachable(&[plain]).expect("an address");
            assert_eq!(address.to_string(), reached);
        }
        assert_eq!(reachable(&[]), None);
    }
}

//! The reference: the shortest pingora proxy that checks an API key and forwards, with pingora's own forwarding.

use std::net::SocketAddr;

use async_trait::async_trait;
use pingora_core::Result;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};

struct BareProxy {
    upstream: SocketAddr,
    authorization: String,
}

#[async_trait]
impl ProxyHttp for BareProxy {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn request_filter(&self, session: &mut Session, _context: &mut ()) -> Result<bool> {
        let header = session.get_header("authorization");
        if header.is_some_and(|value| value.as_bytes() == self.authorization.as_bytes()) {
            return Ok(false);
        }
        session.respond_error(401).await?;
        Ok(true)
    }

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        _context: &mut (),
    ) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.upstream, false, String::new())))
    }
}

/// Runs the proxy until the process is killed.
pub fn run(listen: SocketAddr, upstream: SocketAddr, key: &str) -> ! {
    let mut server = Server::new_with_opt_and_conf(
        None,
        ServerConf {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            upstream_keepalive_pool_size: 4096,
            ..ServerConf::default()
        },
    );
    server.bootstrap();
    let authorization = format!("Bearer {key}");
    let proxy = BareProxy {
        upstream,
        authorization,
    };
    let mut service = http_proxy_service(&server.configuration, proxy);
    service.add_tcp(&listen.to_string());
    server.add_service(service);
    server.run_forever()
}

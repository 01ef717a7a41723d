//! Connections to upstreams: one that waits in the pool is taken, or a new one is made.

use std::sync::OnceLock;
use std::time::Duration;

use pingora_core::Result;
use pingora_core::connectors::ConnectorOptions;
use pingora_core::connectors::http::{v1, v2};
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::upstreams::peer::{HttpPeer, Peer as _};

/// pingora has one for both protocols too. Its future is that of making a connection, which is
/// large, also where one is at hand; and it is not made without reading every certificate of the
/// system for each.
pub struct Connections {
    options: ConnectorOptions,
    http1: v1::Connector,
    /// Made when an upstream is first asked that may speak it.
    http2: OnceLock<v2::Connector>,
}

impl Connections {
    pub fn new(options: ConnectorOptions) -> Connections {
        Connections {
            http1: v1::Connector::new(Some(options.clone())),
            http2: OnceLock::new(),
            options,
        }
    }

    fn http2(&self) -> &v2::Connector {
        self.http2
            .get_or_init(|| v2::Connector::new(Some(self.options.clone())))
    }

    /// One that has been used before, if there is one.
    pub(super) async fn at_hand(&self, peer: &HttpPeer) -> Result<Option<HttpSession>> {
        if may_be_http2(peer)
            && let Some(session) = self.http2().reused_http_session(peer).await?
        {
            return Ok(Some(HttpSession::H2(session)));
        }
        if !may_be_http1(peer) {
            return Ok(None);
        }
        let session = self.http1.reused_http_session(peer).await;
        Ok(session.map(HttpSession::H1))
    }

    /// A new one; but of HTTP/1.1 one may have come back to the pool just now, and then it is `true`
    /// that it has been used before.
    pub(super) async fn make(&self, peer: &HttpPeer) -> Result<(HttpSession, bool)> {
        if may_be_http2(peer) {
            let session = self.http2().new_http_session(peer).await?;
            return Ok((session, false));
        }
        let (session, reused) = self.http1.get_http_session(peer).await?;
        Ok((HttpSession::H1(session), reused))
    }

    /// Another request may follow on it.
    pub(super) async fn release(&self, session: HttpSession, peer: &HttpPeer) {
        let idle: Option<Duration> = peer.idle_timeout();
        match session {
            HttpSession::H1(session) => {
                self.http1.release_http_session(session, peer, idle).await;
            }
            HttpSession::H2(session) => self.http2().release_http_session(session, peer, idle),
            HttpSession::Custom(()) => {}
        }
    }
}

fn may_be_http2(peer: &HttpPeer) -> bool {
    peer.options.alpn.get_max_http_version() == 2
}

fn may_be_http1(peer: &HttpPeer) -> bool {
    peer.options.alpn.get_min_http_version() == 1
}

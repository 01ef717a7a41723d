//! Connections to upstreams: one that waits in the pool is taken, or a new one is made.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pingora_core::Result;
use pingora_core::connectors::http::v2;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::protocols::http::v1::client::HttpSession as Plainly;
use pingora_core::protocols::http::v2::client::Http2Session;
use pingora_core::protocols::{ALPN, Stream};
use pingora_core::upstreams::peer::HttpPeer;

use super::pool::{IDLE, Origin, Pool};
use crate::config::Protocol;
use crate::runtime::Upstream;

const STREAMS_PER_CONNECTION: usize = 100;

/// pingora has a connector for both protocols too. Its future is that of making a connection,
/// which is large, also where one is at hand; and it is not made without reading every certificate
/// of the system for each.
pub struct Connections {
    options: ConnectorOptions,
    http1: TransportConnector,
    waiting: Pool,
    /// Made when an upstream is first asked that may speak it.
    http2: OnceLock<v2::Connector>,
}

/// Where a request is sent.
pub(super) struct Destination {
    pub(super) upstream: Arc<Upstream>,
    pub(super) address: SocketAddr,
    /// How long a connection may take.
    pub(super) limit: Duration,
}

/// A connection without a request on it.
pub(super) enum Line {
    Http1(Stream),
    Http2(Box<Http2Session>),
}

impl Connections {
    pub fn new(options: ConnectorOptions) -> Connections {
        Connections {
            http1: TransportConnector::new(Some(options.clone())),
            waiting: Pool::of_at_most(options.keepalive_pool_size),
            http2: OnceLock::new(),
            options,
        }
    }

    fn http2(&self) -> &v2::Connector {
        self.http2
            .get_or_init(|| v2::Connector::new(Some(self.options.clone())))
    }

    /// One that has been used before, if there is one.
    pub(super) async fn at_hand(&self, to: &Destination) -> Result<Option<Line>> {
        let spoken = to.spoken();
        if spoken.get_max_http_version() == 2 {
            let shared = Box::pin(self.shared(to)).await?;
            if shared.is_some() {
                return Ok(shared);
            }
        }
        if spoken.get_min_http_version() == 2 {
            return Ok(None);
        }
        Ok(self.waiting.take(&to.origin()).map(Line::Http1))
    }

    async fn shared(&self, to: &Destination) -> Result<Option<Line>> {
        let session = self.http2().reused_http_session(&to.peer()).await?;
        Ok(session.map(|session| Line::Http2(Box::new(session))))
    }

    pub(super) async fn make(&self, peer: &HttpPeer) -> Result<Line> {
        if peer.options.alpn.get_max_http_version() < 2 {
            return self.http1.new_stream(peer).await.map(Line::Http1);
        }
        Ok(match self.http2().new_http_session(peer).await? {
            HttpSession::H1(session) => Line::Http1(session.into_inner()),
            HttpSession::H2(session) => Line::Http2(Box::new(session)),
            HttpSession::Custom(()) => return Err(super::drive::no_attempt()),
        })
    }

    /// Another request may follow on it.
    pub(super) async fn release(&self, session: HttpSession, to: &Destination) {
        match session {
            HttpSession::H1(mut session) => {
                session.respect_keepalive();
                if let Some(stream) = session.reuse().await {
                    self.waiting.put(to.origin(), stream);
                }
            }
            HttpSession::H2(session) => {
                let http2 = self.http2();
                http2.release_http_session(session, &to.peer(), Some(IDLE));
            }
            HttpSession::Custom(()) => {}
        }
    }
}

impl Line {
    pub(super) fn begin(self) -> HttpSession {
        match self {
            Line::Http1(stream) => HttpSession::H1(Plainly::new(stream)),
            Line::Http2(session) => HttpSession::H2(*session),
        }
    }
}

impl Destination {
    fn origin(&self) -> Origin {
        (self.upstream.origin.clone(), self.address)
    }

    fn spoken(&self) -> ALPN {
        match (self.upstream.protocol, self.upstream.base.tls) {
            (Protocol::Auto, true) => ALPN::H2H1,
            (Protocol::Auto, false) | (Protocol::Http1, _) => ALPN::H1,
            (Protocol::Http2, _) => ALPN::H2,
        }
    }

    pub(super) fn peer(&self) -> HttpPeer {
        let base = &self.upstream.base;
        // Without a name TLS would not be verified at all; base URLs always have one.
        let mut peer = HttpPeer::new(self.address, base.tls, base.host.clone());
        let options = &mut peer.options;
        options.connection_timeout = Some(self.limit);
        options.total_connection_timeout = Some(self.limit * 2);
        options.idle_timeout = Some(IDLE);
        options.max_h2_streams = STREAMS_PER_CONNECTION;
        options.alpn = self.spoken();
        peer
    }
}

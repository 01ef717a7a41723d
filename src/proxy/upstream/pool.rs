//! Connections to upstreams: an idle one is taken from the pool, or a new one is made.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ahash::RandomState;
use futures_util::FutureExt as _;
use pingora_core::connectors::http::v2;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;
use pingora_core::protocols::http::v1::client::HttpSession as Http1Session;
use pingora_core::protocols::http::v2::client::Http2Session;
use pingora_core::protocols::{ALPN, Stream};
use pingora_core::upstreams::peer::{HttpPeer, Peer as _};
use pingora_core::{Error, ErrorType, Result};
use tokio::io::AsyncReadExt as _;
use tokio::task::unconstrained;

use super::peer_certificates::PeerCertificates;
use super::tunnel::Tunnel;
use crate::config::Protocol;
use crate::runtime::Upstream;

/// How long a connection may be idle; upstreams commonly close theirs after a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// How often connections are closed that were idle for too long, or were closed by the upstream.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

const STREAMS_PER_CONNECTION: usize = 100;

/// The connections to all upstreams. pingora's own connector makes a future that is large enough to
/// make a connection also where an idle one is at hand, and reads all certificates of the system
/// once for each protocol.
pub struct UpstreamPool {
    options: ConnectorOptions,
    http1: TransportConnector,
    idle: IdleConnections,
    /// Made when an upstream is first asked that may speak HTTP/2.
    http2: OnceLock<v2::Connector>,
    certificates: PeerCertificates,
}

/// A connection that has no request on it.
pub(in crate::proxy) enum UpstreamConnection {
    Http1(Stream),
    Http2(Box<Http2Session>),
}

impl UpstreamPool {
    pub fn new(options: ConnectorOptions) -> UpstreamPool {
        UpstreamPool {
            http1: TransportConnector::new(Some(options.clone())),
            idle: IdleConnections::with_capacity(options.keepalive_pool_size),
            http2: OnceLock::new(),
            certificates: PeerCertificates::default(),
            options,
        }
    }

    fn http2(&self) -> &v2::Connector {
        self.http2
            .get_or_init(|| v2::Connector::new(Some(self.options.clone())))
    }

    /// The peer of an upstream at one of its addresses.
    pub(in crate::proxy) fn peer(
        &self,
        upstream: &Upstream,
        address: SocketAddr,
        connect_timeout: Duration,
    ) -> HttpPeer {
        let mut peer = http_peer(upstream, address, connect_timeout);
        if let Some(tls) = &upstream.tls {
            self.certificates
                .apply(tls, upstream.connection_group, &mut peer);
        }
        peer
    }

    /// A connection that has been used before, if there is one.
    pub(in crate::proxy) async fn reuse(
        &self,
        peer: &HttpPeer,
    ) -> Result<Option<UpstreamConnection>> {
        let alpn = &peer.options.alpn;
        if alpn.get_max_http_version() == 2 {
            let shared = Box::pin(self.http2().reused_http_session(peer)).await?;
            if let Some(session) = shared {
                return Ok(Some(UpstreamConnection::Http2(Box::new(session))));
            }
        }
        if alpn.get_min_http_version() == 2 {
            return Ok(None);
        }
        let idle = self.idle.take(peer.reuse_hash());
        Ok(idle.map(UpstreamConnection::Http1))
    }

    pub(in crate::proxy) async fn connect(&self, peer: &HttpPeer) -> Result<UpstreamConnection> {
        if peer.options.alpn.get_max_http_version() < 2 {
            let stream = self.http1.new_stream(peer).await;
            return stream.map(UpstreamConnection::Http1);
        }
        Ok(match self.http2().new_http_session(peer).await? {
            UpstreamSession::H1(session) => UpstreamConnection::Http1(session.into_inner()),
            UpstreamSession::H2(session) => UpstreamConnection::Http2(Box::new(session)),
            UpstreamSession::Custom(()) => {
                return Error::e_explain(ErrorType::InternalError, "a protocol of no kind");
            }
        })
    }

    /// Returns a connection whose response was read to its end, for another request.
    pub(in crate::proxy) async fn release(&self, session: UpstreamSession, peer: &HttpPeer) {
        match session {
            UpstreamSession::H1(mut session) => {
                session.respect_keepalive();
                if let Some(stream) = session.reuse().await {
                    self.idle.put(peer.reuse_hash(), stream);
                }
            }
            UpstreamSession::H2(session) => {
                let http2 = self.http2();
                http2.release_http_session(session, peer, Some(IDLE_TIMEOUT));
            }
            UpstreamSession::Custom(()) => {}
        }
    }
}

impl UpstreamConnection {
    pub(in crate::proxy) fn into_session(self) -> UpstreamSession {
        match self {
            UpstreamConnection::Http1(stream) => UpstreamSession::H1(Http1Session::new(stream)),
            UpstreamConnection::Http2(session) => UpstreamSession::H2(*session),
        }
    }
}

/// The peer of an upstream, without the certificates of its config.
fn http_peer(upstream: &Upstream, address: SocketAddr, connect_timeout: Duration) -> HttpPeer {
    let base = &upstream.base;
    // Without a name pingora would not verify the certificate at all; base URLs always have one.
    let mut peer = HttpPeer::new(address, base.tls, base.host.clone());
    // pingora tells peers apart by neither their certificates nor the tunnel below them.
    peer.group_key = upstream.connection_group;
    let options = &mut peer.options;
    options.connection_timeout = Some(connect_timeout);
    options.total_connection_timeout = Some(connect_timeout * 2);
    options.idle_timeout = Some(IDLE_TIMEOUT);
    options.max_h2_streams = STREAMS_PER_CONNECTION;
    options.alpn = match (upstream.protocol, base.tls) {
        (Protocol::Auto, true) => ALPN::H2H1,
        (Protocol::Auto, false) | (Protocol::Http1, _) => ALPN::H1,
        (Protocol::Http2, _) => ALPN::H2,
    };
    if let Some(proxy) = &upstream.proxy {
        let proxy = proxy.clone();
        options.custom_l4 = Some(Arc::new(Tunnel {
            proxy,
            connect_timeout,
        }));
    }
    peer
}

/// Idle connections of HTTP/1.1 by their peer's `reuse_hash`. pingora's pool watches every
/// connection with a task of its own, which is started and stopped for every request. Here one
/// task looks after all of them, now and then.
#[derive(Clone)]
struct IdleConnections(Arc<Mutex<IdleTable>>);

struct IdleTable {
    /// The newest stand at the end, and are taken first.
    by_peer: HashMap<u64, VecDeque<IdleConnection>, RandomState>,
    count: usize,
    capacity: usize,
    is_swept: bool,
}

struct IdleConnection {
    stream: Stream,
    since: Instant,
}

impl IdleConnection {
    /// Whether nothing has come from the upstream, neither bytes nor an end.
    fn is_quiet(&mut self) -> bool {
        let mut unexpected = [0; 1];
        let reading = unconstrained(self.stream.read(&mut unexpected));
        reading.now_or_never().is_none()
    }
}

impl IdleConnections {
    fn with_capacity(capacity: usize) -> IdleConnections {
        IdleConnections(Arc::new(Mutex::new(IdleTable {
            by_peer: HashMap::default(),
            count: 0,
            capacity,
            is_swept: false,
        })))
    }

    fn take(&self, peer: u64) -> Option<Stream> {
        loop {
            let mut idle = self.lock().pop(peer)?;
            if idle.is_quiet() {
                return Some(idle.stream);
            }
        }
    }

    fn put(&self, peer: u64, stream: Stream) {
        let mut table = self.lock();
        let evicted = table.push(peer, stream);
        let unswept = !std::mem::replace(&mut table.is_swept, true);
        drop(table);
        // Closing is a system call, which nobody else need wait for.
        drop(evicted);
        if unswept {
            tokio::spawn(self.clone().sweep());
        }
    }

    /// Closes useless connections until none is left.
    async fn sweep(self) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            let mut table = self.lock();
            let closed = table.remove_useless(Instant::now());
            let is_empty = table.by_peer.is_empty();
            table.is_swept = !is_empty;
            drop(table);
            drop(closed);
            if is_empty {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, IdleTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdleTable {
    fn pop(&mut self, peer: u64) -> Option<IdleConnection> {
        let idle = self.by_peer.get_mut(&peer)?.pop_back()?;
        self.count -= 1;
        Some(idle)
    }

    /// Returns the connection that is evicted, where the table is full.
    fn push(&mut self, peer: u64, stream: Stream) -> Option<IdleConnection> {
        let of_peer = self.by_peer.entry(peer).or_default();
        let since = Instant::now();
        of_peer.push_back(IdleConnection { stream, since });
        self.count += 1;
        // Of the peer that has most: otherwise one that came late would never keep any.
        let is_full = self.count > self.capacity;
        let longest = self.by_peer.values_mut().filter(|_| is_full);
        let longest = longest.max_by_key(|of_peer| of_peer.len());
        let oldest = longest.and_then(VecDeque::pop_front);
        self.count -= usize::from(oldest.is_some());
        oldest
    }

    fn remove_useless(&mut self, now: Instant) -> Vec<IdleConnection> {
        let mut removed = Vec::new();
        self.by_peer.retain(|_, of_peer| {
            for _ in 0..of_peer.len() {
                let Some(mut idle) = of_peer.pop_front() else {
                    break;
                };
                let is_young = now.saturating_duration_since(idle.since) < IDLE_TIMEOUT;
                match is_young && idle.is_quiet() {
                    true => of_peer.push_back(idle),
                    false => removed.push(idle),
                }
            }
            !of_peer.is_empty()
        });
        self.count -= removed.len();
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    /// Both ends of one connection, told apart by a number that the near end sends first.
    async fn connection(listener: &TcpListener, number: u8) -> (Stream, TcpStream) {
        let address = listener.local_addr().expect("an address");
        let mut near = TcpStream::connect(address).await.expect("connects");
        let (mut far, _) = listener.accept().await.expect("accepts");
        near.write_all(&[number]).await.expect("writes");
        assert_eq!(far.read_u8().await.expect("reads"), number);
        let near: pingora_core::protocols::l4::stream::Stream = near.into();
        (Box::new(near), far)
    }

    async fn listener() -> (TcpListener, u64) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        (listener, port.into())
    }

    async fn send(stream: &mut Stream, far: &mut TcpStream, byte: u8) {
        stream.write_all(&[byte]).await.expect("writes");
        stream.flush().await.expect("flushes");
        assert_eq!(far.read_u8().await.expect("reads"), byte);
    }

    #[tokio::test]
    async fn the_newest_is_taken_first_and_only_for_its_peer() {
        let (listener, peer) = listener().await;
        let pool = IdleConnections::with_capacity(8);
        let (first, mut first_far) = connection(&listener, 1).await;
        let (second, mut second_far) = connection(&listener, 2).await;
        pool.put(peer, first);
        pool.put(peer, second);
        assert!(pool.take(peer + 1).is_none());
        let mut taken = pool.take(peer).expect("the second");
        send(&mut taken, &mut second_far, 7).await;
        let mut taken = pool.take(peer).expect("the first");
        send(&mut taken, &mut first_far, 8).await;
        assert!(pool.take(peer).is_none());
    }

    /// Waits until this end knows what the other has done.
    async fn disturbed(stream: Stream) -> Stream {
        let since = Instant::now();
        let mut idle = IdleConnection { stream, since };
        while idle.is_quiet() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        idle.stream
    }

    #[tokio::test]
    async fn a_connection_that_has_ended_or_holds_data_is_not_reused() {
        let (listener, peer) = listener().await;
        let pool = IdleConnections::with_capacity(8);
        let (sound, _sound_far) = connection(&listener, 1).await;
        let (ended, ended_far) = connection(&listener, 2).await;
        let (speaking, mut speaking_far) = connection(&listener, 3).await;
        drop(ended_far);
        speaking_far
            .write_all(b"HTTP/1.1 408")
            .await
            .expect("writes");
        let (ended, speaking) = (disturbed(ended).await, disturbed(speaking).await);
        for stream in [sound, ended, speaking] {
            pool.put(peer, stream);
        }
        assert!(pool.take(peer).is_some());
        assert!(pool.take(peer).is_none());
        assert_eq!(pool.lock().count, 0);
    }

    #[tokio::test]
    async fn the_oldest_is_evicted() {
        let (listener, peer) = listener().await;
        let pool = IdleConnections::with_capacity(1);
        let (first, mut first_far) = connection(&listener, 1).await;
        let (second, mut second_far) = connection(&listener, 2).await;
        pool.put(peer, first);
        pool.put(peer, second);
        assert_eq!(first_far.read(&mut [0]).await.expect("an end"), 0);
        let mut taken = pool.take(peer).expect("the second");
        send(&mut taken, &mut second_far, 7).await;
        assert!(pool.take(peer).is_none());
    }

    #[tokio::test]
    async fn a_new_peer_evicts_a_connection_of_the_peer_that_has_most() {
        let ((listener, peer), (other_listener, other)) = (listener().await, listener().await);
        let pool = IdleConnections::with_capacity(2);
        for number in 0..2 {
            pool.put(peer, connection(&listener, number).await.0);
        }
        pool.put(other, connection(&other_listener, 3).await.0);
        let table = pool.lock();
        assert_eq!(
            (table.by_peer[&other].len(), table.by_peer[&peer].len()),
            (1, 1)
        );
        assert_eq!(table.count, 2);
    }

    #[tokio::test]
    async fn connections_that_were_idle_too_long_or_have_ended_are_swept() {
        let (listener, peer) = listener().await;
        let pool = IdleConnections::with_capacity(8);
        let (ended, ended_far) = connection(&listener, 1).await;
        let (sound, mut sound_far) = connection(&listener, 2).await;
        drop(ended_far);
        let ended = disturbed(ended).await;
        pool.put(peer, ended);
        pool.put(peer, sound);
        assert!(pool.lock().is_swept);
        let now = Instant::now();
        assert_eq!(pool.lock().remove_useless(now).len(), 1);
        assert_eq!(pool.lock().count, 1);
        let gone = pool.lock().remove_useless(now + IDLE_TIMEOUT * 2);
        assert_eq!((gone.len(), pool.lock().by_peer.len()), (1, 0));
        drop(gone);
        assert_eq!(sound_far.read(&mut [0]).await.expect("an end"), 0);
    }
}

//! Client connections: which protocol they speak, how long their headers may take, and their
//! requests, each of which goes to pingora's `HttpProxy`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pingora_core::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::H2Options;
use pingora_core::protocols::{ALPN, Stream};
use pingora_core::server::ShutdownWatch;
use pingora_core::server::configuration::ServerConf;
use pingora_proxy::{HttpProxy, http_proxy};
use tokio::time::timeout;

use super::connection_limits::{
    ActiveRequest, ClientConnection, ConnectionLimits, ConnectionPermit, ForwardedRequest,
};
use super::http1_framing::{BodyFraming, FramingCheck};
use super::http1_stream::{Http1Stream, SharedFraming};
use super::listen_endpoint::{self, ListenEndpoint};
use super::open_connections::MaxConnections;
use crate::metrics::Metrics;
use crate::proxy::gateway::Gateway;
use crate::proxy::timer::ReusableTimer;
use crate::runtime::{OwnerShare, Runtime};

/// What a connection of HTTP/2 begins with in the clear. There is more of it, but a request of
/// HTTP/1.0 may be no longer.
const HTTP2_PREFACE: &[u8; 16] = b"PRI * HTTP/2.0\r\n";

/// How long a connection is kept open for its next request.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Tells pingora to set no timer for each read: ours is one for all of them.
const NO_KEEP_ALIVE_TIMER: Option<u64> = Some(0);

tokio::task_local! {
    static CONNECTION: Connection;
    /// The same connection, as all of its requests know it.
    static CLIENT: Arc<ClientConnection>;
}

/// What the task of a connection shares with the request that it serves.
#[derive(Default)]
struct Connection {
    /// Whether a request header of HTTP/1 is being waited for.
    is_awaited: Cell<bool>,
    /// Used for the header, then by the request.
    timer: RefCell<ReusableTimer>,
    /// The request of HTTP/1 that is served.
    request: RefCell<Option<ActiveRequest>>,
    /// Where headers and bodies end on HTTP/1.
    framing: SharedFraming,
}

/// Ends the header timeout of the connection, and lends its timer to the request. On HTTP/2 every
/// request has a task of its own, and its own timer.
pub(in crate::proxy) fn request_header_read() -> ReusableTimer {
    let lend = |connection: &Connection| {
        connection.is_awaited.set(false);
        connection.framing.lock().end_header();
        connection.request.replace(serve_request());
        connection.timer.take()
    };
    CONNECTION.try_with(lend).unwrap_or_default()
}

/// Gives the timer back to the connection, for its next request.
pub(in crate::proxy) fn return_timer(timer: ReusableTimer) {
    // On HTTP/2 it is dropped.
    let _ = CONNECTION.try_with(|connection| connection.timer.replace(timer));
}

/// Notes that the connection serves a request.
fn serve_request() -> Option<ActiveRequest> {
    CLIENT.try_with(|client| client.serve_request()).ok()
}

/// Notes that a request of this connection is at an upstream until what is returned is dropped.
pub(in crate::proxy) fn forward_request() -> Option<ForwardedRequest> {
    CLIENT.try_with(|client| client.forward_request()).ok()
}

/// Notes that a request of this connection has a right key, and whose.
pub(in crate::proxy) fn set_owner(owner: &Arc<OwnerShare>) {
    // The requests of image tasks have no connection.
    let _ = CLIENT.try_with(|client| client.set_owner(owner));
}

/// Tells whether no request of this connection has had a right key.
pub(in crate::proxy) fn has_no_key() -> bool {
    CLIENT.try_with(|client| !client.has_key()).unwrap_or(false)
}

/// Checks the framing of a request of HTTP/1 whose header has this length.
pub(in crate::proxy) fn check_framing(header_length: usize, body: BodyFraming) -> FramingCheck {
    let check = |connection: &Connection| connection.framing.lock().set_body(header_length, body);
    CONNECTION.try_with(check).unwrap_or(FramingCheck::Unknown)
}

/// Tells whether the body could not be read because the head of a chunk is wrong.
pub(in crate::proxy) fn has_invalid_chunk() -> bool {
    let has_invalid_chunk = |connection: &Connection| connection.framing.lock().has_invalid_chunk();
    CONNECTION.try_with(has_invalid_chunk).unwrap_or(false)
}

/// A request header of HTTP/1 is waited for from here on.
fn await_header() {
    CONNECTION.with(|connection| {
        connection.is_awaited.set(true);
        connection.framing.lock().begin_header();
        connection.request.take();
    });
}

/// Tells whether a request header of HTTP/1 is being waited for.
fn is_awaited() -> bool {
    CONNECTION.with(|connection| connection.is_awaited.get())
}

/// Runs a future of this connection; `None`: at the deadline, a header was still being waited for.
async fn within_header_timeout<T>(
    limit: Duration,
    is_awaited: impl Fn() -> bool,
    mut serving: Pin<&mut impl Future<Output = Option<T>>>,
) -> Option<T> {
    let deadline = Instant::now() + limit;
    poll_fn(|context| {
        if let Poll::Ready(served) = serving.as_mut().poll(context) {
            return Poll::Ready(served);
        }
        let has_passed = |connection: &Connection| {
            let mut timer = connection.timer.borrow_mut();
            is_awaited() && timer.poll_until(deadline, context).is_ready()
        };
        match CONNECTION.with(has_passed) {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    })
    .await
}

/// Accepts connections. pingora would tell the protocols apart too, but would wait for the first
/// bytes for as long as it takes: a client that sends none would be kept for ever.
pub struct Listener {
    endpoints: Vec<ListenEndpoint>,
    proxy: Arc<HttpProxy<Gateway>>,
    options: HttpServerOptions,
    h2_options: H2Options,
    admission: ConnectionAdmission,
    metrics: Arc<Metrics>,
}

impl Listener {
    /// Serves the gateway by pingora's own proxy.
    pub fn new(
        endpoints: Vec<ListenEndpoint>,
        gateway: Gateway,
        conf: &Arc<ServerConf>,
        options: HttpServerOptions,
        h2_options: H2Options,
        admission: ConnectionAdmission,
    ) -> Listener {
        let metrics = gateway.metrics.clone();
        Listener {
            endpoints,
            proxy: Arc::new(http_proxy(conf, gateway)),
            options,
            h2_options,
            admission,
            metrics,
        }
    }

    /// Makes the TLS handshake of a connection where there is one, and serves it.
    async fn begin(
        &self,
        (endpoint, peer): (&ListenEndpoint, Option<SocketAddr>),
        client: &ClientConnection,
        mut stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<()> {
        if let Some(tls) = endpoint.tls() {
            let limit = self.admission.header_timeout();
            // On the heap: it is soon over, and every connection would hold its place.
            stream = Box::pin(listen_endpoint::handshake(tls, stream, peer, limit)).await?;
            if !client.finish_handshake(self.admission.max()) {
                return None;
            }
        }
        self.serve(stream, shutdown).await
    }

    async fn serve(&self, mut stream: Stream, shutdown: &ShutdownWatch) -> Option<()> {
        let limit = self.admission.header_timeout();
        let is_http2 = if stream.get_ssl_digest().is_some() {
            matches!(stream.selected_alpn_proto(), Some(ALPN::H2))
        } else {
            let mut first = [0; HTTP2_PREFACE.len()];
            let peeked = timeout(limit, stream.try_peek(&mut first)).await;
            peeked.ok()?.ok()?;
            self.options.h2c && first == *HTTP2_PREFACE
        };
        if is_http2 {
            let connection = Arc::new(Http2Connection {
                client: CLIENT.try_with(Arc::clone).ok()?,
                proxy: self.proxy.clone(),
                options: self.options.clone(),
                h2_options: self.h2_options.clone(),
                has_request: AtomicBool::new(false),
            });
            let is_awaited = || !connection.has_request.load(Ordering::Relaxed);
            let serving = pin!(connection.process_new(stream, shutdown));
            within_header_timeout(limit, is_awaited, serving).await;
            return None;
        }
        self.serve_http1(stream, shutdown).await
    }

    /// Serves all requests of a connection of HTTP/1.1; `None`: it has ended, as all do.
    async fn serve_http1(&self, stream: Stream, shutdown: &ShutdownWatch) -> Option<()> {
        let framing = CONNECTION.with(|connection| connection.framing.clone());
        let stream = Http1Stream::new(stream, framing);
        let mut session = ServerSession::new_http1(Box::new(stream));
        let mut limit = self.admission.header_timeout();
        loop {
            session.set_keepalive(NO_KEEP_ALIVE_TIMER);
            // Without it a client that sends its next request early, or an empty line after its
            // body, is taken for one that has gone wrong, and loses the response it is waiting for.
            session.set_pipelining_enabled(true);
            await_header();
            let serving = pin!(self.proxy.process_new_http(session, shutdown));
            let reused = within_header_timeout(limit, is_awaited, serving).await?;
            let (stream, settings) = reused.consume();
            session = ServerSession::new_http1(stream);
            if let Some(settings) = settings {
                settings.apply_to_session(&mut session);
            }
            // The next request may be a while in coming.
            limit = KEEP_ALIVE + self.admission.header_timeout();
        }
    }
}

#[async_trait]
impl ServerApp for Listener {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        self.metrics.set_service_runtime();
        let endpoint = listen_endpoint::find(&self.endpoints, &stream)?;
        let peer = stream.get_socket_digest();
        let peer = peer.and_then(|digest| digest.peer_addr()?.as_inet().copied());
        let permit = self.admission.admit(peer, endpoint)?;
        let client = permit.connection();
        let serving = self.begin((endpoint, peer), client, stream, shutdown);
        let serving = CONNECTION.scope(Connection::default(), serving);
        serve_until_evicted(client, CLIENT.scope(client.clone(), serving)).await;
        None
    }

    /// The listeners are closed: connections that wait for a request end.
    async fn cleanup(&self) {
        self.proxy.http_cleanup().await;
    }
}

/// Serves a connection, until it ends or has to make room for another one.
async fn serve_until_evicted<T>(client: &ClientConnection, serving: impl Future<Output = T>) {
    let (mut serving, mut evicted) = (pin!(serving), pin!(client.evicted()));
    let mut is_evicted = false;
    poll_fn(|context| {
        if serving.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        is_evicted = is_evicted || evicted.as_mut().poll(context).is_ready();
        match is_evicted && client.may_end() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// Decides which connections are served.
#[derive(Clone)]
pub struct ConnectionAdmission {
    runtime: Arc<Runtime>,
    limits: Arc<ConnectionLimits>,
    default_max: u64,
}

impl ConnectionAdmission {
    /// `default_max` holds where the config has no `server.max_connections`.
    pub fn new(runtime: Arc<Runtime>, default_max: u64) -> ConnectionAdmission {
        ConnectionAdmission {
            runtime,
            limits: Arc::default(),
            default_max,
        }
    }

    /// Counts a connection; `None`: it would be one too many.
    fn admit(
        &self,
        peer: Option<SocketAddr>,
        endpoint: &ListenEndpoint,
    ) -> Option<ConnectionPermit> {
        match endpoint.tls() {
            Some(_) => Some(self.limits.admit_handshake(peer, self.max())),
            None => self.limits.admit(peer, self.max()),
        }
    }

    fn max(&self) -> MaxConnections {
        let snapshot = self.runtime.snapshot();
        MaxConnections {
            total: snapshot.server.max_connections.unwrap_or(self.default_max),
            per_address: snapshot.server.max_connections_per_address,
        }
    }

    fn header_timeout(&self) -> Duration {
        self.runtime.snapshot().server.timeouts.header
    }
}

/// One connection of HTTP/2: pingora's proxy, and its options.
struct Http2Connection {
    proxy: Arc<HttpProxy<Gateway>>,
    options: HttpServerOptions,
    h2_options: H2Options,
    client: Arc<ClientConnection>,
    /// Whether the header of a request has arrived.
    has_request: AtomicBool,
}

#[async_trait]
impl HttpServerApp for Http2Connection {
    async fn process_new_http(
        self: &Arc<Self>,
        session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        self.has_request.store(true, Ordering::Relaxed);
        let _served = self.client.serve_request();
        let serving = self.proxy.process_new_http(session, shutdown);
        CLIENT.scope(self.client.clone(), serving).await
    }

    fn h2_options(&self) -> Option<H2Options> {
        Some(self.h2_options.clone())
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.options)
    }

    async fn http_cleanup(&self) {
        self.proxy.http_cleanup().await;
    }
}

//! Client connections: which protocol they speak, how long their headers may take, and their
//! requests, each of which goes to pingora's `HttpProxy`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
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

use super::gateway::Gateway;
use super::timer::ReusableTimer;
use crate::metrics::Metrics;
use crate::runtime::Runtime;

/// What a connection of HTTP/2 begins with in the clear. There is more of it, but a request of
/// HTTP/1.0 may be no longer.
const HTTP2_PREFACE: &[u8; 16] = b"PRI * HTTP/2.0\r\n";

/// How long a connection is kept open for its next request.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Tells pingora to set no timer for each read: ours is one for all of them.
const NO_KEEP_ALIVE_TIMER: Option<u64> = Some(0);

tokio::task_local! {
    static CONNECTION: Connection;
}

/// What the task of a connection shares with the request that it serves.
#[derive(Default)]
struct Connection {
    /// Whether a request header, or the preface of HTTP/2, is being waited for.
    is_awaited: Cell<bool>,
    /// Used for the header, then by the request.
    timer: RefCell<ReusableTimer>,
}

/// Ends the header timeout of the connection, and lends its timer to the request. On HTTP/2 every
/// request has a task of its own, and its own timer.
pub(super) fn request_header_read() -> ReusableTimer {
    let lend = |connection: &Connection| {
        connection.is_awaited.set(false);
        connection.timer.take()
    };
    CONNECTION.try_with(lend).unwrap_or_default()
}

/// Gives the timer back to the connection, for its next request.
pub(super) fn return_timer(timer: ReusableTimer) {
    // On HTTP/2 it is dropped.
    let _ = CONNECTION.try_with(|connection| connection.timer.replace(timer));
}

fn set_awaited(is_awaited: bool) {
    // Outside of a connection's task nothing is waited for.
    let _ = CONNECTION.try_with(|connection| connection.is_awaited.set(is_awaited));
}

/// Runs a future of this connection; `None`: the header was not there in time.
async fn within_header_timeout<T>(
    limit: Duration,
    mut serving: Pin<&mut impl Future<Output = Option<T>>>,
) -> Option<T> {
    let deadline = Instant::now() + limit;
    poll_fn(|context| {
        if let Poll::Ready(served) = serving.as_mut().poll(context) {
            return Poll::Ready(served);
        }
        let has_passed = |connection: &Connection| {
            let mut timer = connection.timer.borrow_mut();
            connection.is_awaited.get() && timer.poll_until(deadline, context).is_ready()
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
    service: Arc<HttpService>,
    runtime: Arc<Runtime>,
    metrics: Arc<Metrics>,
}

impl Listener {
    /// Serves the gateway by pingora's own proxy.
    pub fn new(
        gateway: Gateway,
        conf: &Arc<ServerConf>,
        options: HttpServerOptions,
        h2_options: H2Options,
    ) -> Listener {
        let (runtime, metrics) = (gateway.runtime.clone(), gateway.metrics.clone());
        let service = HttpService {
            proxy: Arc::new(http_proxy(conf, gateway)),
            options,
            h2_options,
        };
        Listener {
            service: Arc::new(service),
            runtime,
            metrics,
        }
    }

    fn header_timeout(&self) -> Duration {
        self.runtime.snapshot().server.timeouts.header
    }

    async fn serve(&self, mut stream: Stream, shutdown: &ShutdownWatch) -> Option<()> {
        let limit = self.header_timeout();
        let is_http2 = if stream.get_ssl_digest().is_some() {
            matches!(stream.selected_alpn_proto(), Some(ALPN::H2))
        } else {
            let mut first = [0; HTTP2_PREFACE.len()];
            let peeked = timeout(limit, stream.try_peek(&mut first)).await;
            peeked.ok()?.ok()?;
            self.service.options.h2c && first == *HTTP2_PREFACE
        };
        if is_http2 {
            let serving = pin!(self.service.process_new(stream, shutdown));
            within_header_timeout(limit, serving).await;
            return None;
        }
        self.serve_http1(stream, shutdown).await
    }

    /// Serves all requests of a connection of HTTP/1.1; `None`: it has ended, as all do.
    async fn serve_http1(&self, stream: Stream, shutdown: &ShutdownWatch) -> Option<()> {
        let mut session = ServerSession::new_http1(stream);
        let mut limit = self.header_timeout();
        loop {
            session.set_keepalive(NO_KEEP_ALIVE_TIMER);
            // Without it a client that sends its next request early, or an empty line after its
            // body, is taken for one that has gone wrong, and loses the response it is waiting for.
            session.set_pipelining_enabled(true);
            set_awaited(true);
            let serving = pin!(self.service.proxy.process_new_http(session, shutdown));
            let reused = within_header_timeout(limit, serving).await?;
            let (stream, settings) = reused.consume();
            session = ServerSession::new_http1(stream);
            if let Some(settings) = settings {
                settings.apply_to_session(&mut session);
            }
            // The next request may be a while in coming.
            limit = KEEP_ALIVE + self.header_timeout();
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
        let serving = self.serve(stream, shutdown);
        CONNECTION.scope(Connection::default(), serving).await;
        None
    }

    /// The listeners are closed: connections that wait for a request end.
    async fn cleanup(&self) {
        self.service.http_cleanup().await;
    }
}

/// pingora's proxy, with the options of its HTTP/2 connections.
pub struct HttpService {
    proxy: Arc<HttpProxy<Gateway>>,
    options: HttpServerOptions,
    h2_options: H2Options,
}

#[async_trait]
impl HttpServerApp for HttpService {
    async fn process_new_http(
        self: &Arc<Self>,
        session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        self.proxy.process_new_http(session, shutdown).await
    }

    /// pingora asks for these when it is about to wait for the preface of HTTP/2 …
    fn h2_options(&self) -> Option<H2Options> {
        set_awaited(true);
        Some(self.h2_options.clone())
    }

    /// … and for these when that has arrived.
    fn server_options(&self) -> Option<&HttpServerOptions> {
        set_awaited(false);
        Some(&self.options)
    }

    async fn http_cleanup(&self) {
        self.proxy.http_cleanup().await;
    }
}

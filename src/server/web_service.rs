//! The admin port and the console: each has its own connections, so that it answers when clients have taken all theirs.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;
use tower_http::timeout::TimeoutLayer;

use super::service_listener::ServiceListener;
use super::write_timeout::WriteTimeout;
use crate::config::ClientTimeouts;

/// How long the port rests after an error, such as too many open files.
const REST: Duration = Duration::from_millis(100);

/// How long a request may take with its body; `server.timeouts.body` may be shorter.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves a router on a listener.
pub(super) struct WebService {
    /// What it is called in the log.
    name: &'static str,
    listener: ServiceListener,
    router: axum::Router,
    timeouts: ClientTimeouts,
    /// One connection more ends the oldest, so that nobody can hold them all.
    max_connections: usize,
    tls: Option<TlsAcceptor>,
}

impl WebService {
    pub(super) fn new(
        name: &'static str,
        listener: ServiceListener,
        router: axum::Router,
        timeouts: ClientTimeouts,
        max_connections: usize,
    ) -> WebService {
        // A body that never comes would keep its connection for ever.
        let limit = timeouts.body.min(REQUEST_TIMEOUT);
        let timeout = TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limit);
        WebService {
            name,
            listener,
            router: router.layer(timeout),
            timeouts,
            max_connections,
            tls: None,
        }
    }

    pub(super) fn with_tls(self, tls: Option<TlsAcceptor>) -> WebService {
        WebService { tls, ..self }
    }

    async fn accept(
        name: &'static str,
        tls: Option<TlsAcceptor>,
        stream: TcpStream,
        client: SocketAddr,
        router: axum::Router,
        timeouts: ClientTimeouts,
    ) {
        let Some(tls) = tls else {
            return WebService::serve(name, stream, client, router, timeouts).await;
        };
        match timeout(timeouts.header, tls.accept(stream)).await {
            Ok(Ok(stream)) => WebService::serve(name, stream, client, router, timeouts).await,
            Ok(Err(error)) => log::debug!("a connection of the {name}: {error}"),
            Err(_) => log::debug!("a connection of the {name}: no TLS handshake in time"),
        }
    }

    async fn serve(
        name: &'static str,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        client: SocketAddr,
        router: axum::Router,
        timeouts: ClientTimeouts,
    ) {
        // A client that asks on and on and reads nothing would keep its connection for ever.
        let stream = WriteTimeout::new(stream, timeouts.write_idle);
        let service = router.map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(client));
            request
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeouts.header)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        if let Err(error) = serving.await {
            log::debug!("a connection of the {name}: {error}");
        }
    }
}

#[async_trait]
impl BackgroundService for WebService {
    /// It stays up while the gateway drains, so that monitoring sees it. A successor takes its address.
    async fn start(&self, _shutdown: ShutdownWatch) {
        let listener = match self.listener.take().await {
            Ok(listener) => listener,
            Err(error) => return log::error!("the {} cannot be opened: {error}", self.name),
        };
        let mut connections: VecDeque<AbortHandle> = VecDeque::new();
        let mut handed_over = pin!(self.listener.handed_over());
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut handed_over => return,
            };
            match accepted {
                Ok((stream, client)) => {
                    connections.retain(|connection| !connection.is_finished());
                    if connections.len() >= self.max_connections {
                        // It has had its time: who comes new is answered within milliseconds.
                        connections.pop_front().inspect(AbortHandle::abort);
                    }
                    let router = self.router.clone();
                    let (name, tls) = (self.name, self.tls.clone());
                    let serving =
                        WebService::accept(name, tls, stream, client, router, self.timeouts);
                    connections.push_back(tokio::spawn(serving).abort_handle());
                }
                Err(error) => {
                    log::warn!("the {} accepts no connection: {error}", self.name);
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }
}

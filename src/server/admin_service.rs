//! The admin port: it has its own few connections, so that it answers when clients have taken all theirs.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::write_timeout::WriteTimeout;
use crate::config::ClientTimeouts;

/// More than any monitoring needs at once. One more ends the oldest, so that nobody can hold them all.
const MAX_CONNECTIONS: usize = 32;

/// How long the port rests after an error, such as too many open files.
const REST: Duration = Duration::from_millis(100);

/// Serves the admin port.
pub(super) struct AdminService {
    listener: Mutex<Option<TcpListener>>,
    router: axum::Router,
    timeouts: ClientTimeouts,
}

impl AdminService {
    pub(super) fn new(
        listener: TcpListener,
        router: axum::Router,
        timeouts: ClientTimeouts,
    ) -> AdminService {
        AdminService {
            listener: Mutex::new(Some(listener)),
            router,
            timeouts,
        }
    }

    async fn serve(stream: TcpStream, router: axum::Router, timeouts: ClientTimeouts) {
        // A client that asks on and on and reads nothing would keep its connection for ever.
        let stream = WriteTimeout::new(stream, timeouts.write_idle);
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeouts.header)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        if let Err(error) = serving.await {
            log::debug!("a connection of the admin port: {error}");
        }
    }
}

#[async_trait]
impl BackgroundService for AdminService {
    /// It stays up while the gateway drains, so that monitoring sees it.
    async fn start(&self, _shutdown: ShutdownWatch) {
        let taken = self.listener.lock();
        let taken = taken.unwrap_or_else(PoisonError::into_inner).take();
        let Some(Ok(listener)) = taken.map(tokio::net::TcpListener::from_std) else {
            return;
        };
        let mut connections: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    connections.retain(|connection| !connection.is_finished());
                    if connections.len() >= MAX_CONNECTIONS {
                        // It has had its time: a monitor that comes new is answered within milliseconds.
                        connections.pop_front().inspect(AbortHandle::abort);
                    }
                    let serving = AdminService::serve(stream, self.router.clone(), self.timeouts);
                    connections.push_back(tokio::spawn(serving).abort_handle());
                }
                Err(error) => {
                    log::warn!("the admin port accepts no connection: {error}");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }
}

//! Background services of pingora's server: health checks, credentials, lists of models, image tasks and the small HTTP servers.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

use crate::credentials::{CredentialRefresher, SourceFetcher};
use crate::images::TaskQueue;
use crate::proxy::{Gateway, HealthChecks, ModelDiscovery};

/// Runs the health checks until shutdown.
pub(super) struct HealthCheckService(pub(super) HealthChecks);

#[async_trait]
impl BackgroundService for HealthCheckService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        tokio::select! {
            () = self.0.run() => {}
            _ = shutdown.changed() => {}
        }
    }
}

/// Keeps the credentials of upstreams fresh until shutdown.
pub(super) struct CredentialService(pub(super) CredentialRefresher<SourceFetcher>);

#[async_trait]
impl BackgroundService for CredentialService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        tokio::select! {
            () = self.0.run() => {}
            _ = shutdown.changed() => {}
        }
    }
}

/// Reads the lists of models until shutdown.
pub(super) struct DiscoveryService(pub(super) ModelDiscovery);

#[async_trait]
impl BackgroundService for DiscoveryService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        tokio::select! {
            () = self.0.run() => {}
            _ = shutdown.changed() => {}
        }
    }
}

/// Runs image tasks until shutdown.
pub(super) struct ImageTaskService {
    pub(super) queue: Arc<TaskQueue>,
    pub(super) worker: Arc<Gateway>,
}

#[async_trait]
impl BackgroundService for ImageTaskService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let shutdown = async {
            // An error means that the sender is gone, which is a shutdown too.
            let _ = shutdown.changed().await;
        };
        self.queue.clone().run(self.worker.clone(), shutdown).await;
    }
}

/// The mock backend of the demo.
pub(super) struct MockService {
    listener: Mutex<Option<TcpListener>>,
    router: axum::Router,
}

impl MockService {
    pub(super) fn new(listener: TcpListener, router: axum::Router) -> MockService {
        MockService {
            listener: Mutex::new(Some(listener)),
            router,
        }
    }
}

#[async_trait]
impl BackgroundService for MockService {
    async fn start(&self, _shutdown: ShutdownWatch) {
        let taken = self
            .listener
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(Ok(listener)) = taken.map(tokio::net::TcpListener::from_std) else {
            return;
        };
        if let Err(error) = axum::serve(listener, self.router.clone()).await {
            log::error!("the listener of the mock backend failed: {error}");
        }
    }
}

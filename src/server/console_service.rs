//! Serves the console on its own listener, with a connection pool of its own: people never wait for requests, nor
//! requests for people.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio_rustls::TlsAcceptor;

use super::service_listener::ServiceListener;
use super::web_service::WebService;
use crate::config::{ClientTimeouts, ConsoleConfig, StoreConfig};
use crate::console::{self, Console, GatewayAccess};
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::store::Store;

/// Connections to the database.
const STORE_CONNECTIONS: u32 = 4;
/// How often old captures are looked for.
const FORGET_INTERVAL: Duration = Duration::from_secs(30);
/// How often days are added up; after a failure, sooner.
const SUM_INTERVAL: Duration = Duration::from_secs(3600);
const SUM_RETRY: Duration = Duration::from_secs(10);

pub(super) struct ConsoleService {
    pub(super) console: ConsoleConfig,
    pub(super) store: StoreConfig,
    pub(super) runtime: Arc<Runtime>,
    pub(super) metrics: Arc<Metrics>,
    /// How the console asks the gateway as clients do.
    pub(super) gateway: Option<GatewayAccess>,
    /// Taken when the service starts.
    pub(super) listener: Mutex<Option<ServiceListener>>,
    /// Absent: a proxy in front of it has TLS, or it is for this machine.
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) timeouts: ClientTimeouts,
    pub(super) max_connections: usize,
}

#[async_trait]
impl BackgroundService for ConsoleService {
    async fn start(&self, shutdown: ShutdownWatch) {
        let listener = self.listener.lock();
        let listener = listener.unwrap_or_else(PoisonError::into_inner).take();
        let Some(listener) = listener else {
            return;
        };
        // Here, because connections belong to the runtime that made them. The tables are there, or will be: the
        // gateway migrates them.
        let store = match Store::with_connections(&self.store, STORE_CONNECTIONS) {
            Ok(store) => store,
            Err(error) => {
                log::error!("the console cannot use the store: {error}");
                return;
            }
        };
        let console = Console::new(
            store.clone(),
            self.console.clone(),
            Some(self.runtime.clone()),
        );
        let console = console.with_gateway(self.gateway.clone());
        let console = Arc::new(console);
        tokio::spawn(console::watch_alerts(console.clone(), self.metrics.clone()));
        tokio::spawn(sum_up_days(store.clone()));
        let router = console::router(console);
        tokio::spawn(forget_captures(self.runtime.clone()));
        let most = self.max_connections;
        let web = WebService::new("console", listener, router, self.timeouts, most);
        let web = web.with_tls(self.tls.clone());
        web.start(shutdown).await;
    }
}

/// Adds up the usage of days that are over, for the charts.
async fn sum_up_days(store: Store) {
    loop {
        let pause = match store.sum_up_days(Timestamp::now()).await {
            Ok(_) => SUM_INTERVAL,
            Err(error) => {
                // At the start, the gateway may still be making the tables.
                log::debug!("the usage of past days cannot be added up: {error}");
                SUM_RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Forgets what inspections have captured when its time is over, also where nobody looks at it.
async fn forget_captures(runtime: Arc<Runtime>) {
    loop {
        tokio::time::sleep(FORGET_INTERVAL).await;
        runtime.state.inspector.forget_old();
    }
}

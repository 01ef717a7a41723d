//! The life of the process: ready when the listeners are open, draining after a signal, and the exit.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::memory;
use super::service_manager;
use crate::access::Leases;
use crate::admin::{Admin, LifecyclePhase};
use crate::config::Listen;
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::proxy::{AccessLog, ConversationStore};
use crate::telemetry::Telemetry;

/// After the last request has ended, HTTP/2 connections still write their final frames.
const FINAL_FRAMES: Duration = Duration::from_millis(50);

/// Time limit of the last export of spans.
const FINAL_EXPORT: Duration = Duration::from_secs(2);

/// Time limit of the last flush of the journal.
const FINAL_FLUSH: Duration = Duration::from_secs(2);

/// The service that reports readiness, drains after a signal, and exits.
pub(super) struct Lifecycle {
    pub(super) admin: Arc<Admin>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) access_log: Option<AccessLog>,
    pub(super) telemetry: Option<Telemetry>,
    pub(super) archive: Option<Arc<ConversationStore>>,
    pub(super) journal: Option<Arc<Journal>>,
    pub(super) leases: Option<Arc<Leases>>,
    pub(super) stop: Arc<Notify>,
    pub(super) stopped: Arc<AtomicBool>,
    pub(super) listen: Vec<Listen>,
    pub(super) drain_timeout: Duration,
    pub(super) greeting: String,
    pub(super) remove_at_exit: Option<PathBuf>,
}

#[async_trait]
impl BackgroundService for Lifecycle {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let serving = async {
            self.announce().await;
            memory::purge().await
        };
        // A signal may come before the listeners are open, and then they never are.
        tokio::select! {
            changed = shutdown.changed() => if changed.is_err() {
                return;
            },
            never = serving => match never {},
        }
        self.admin.enter(LifecyclePhase::Draining);
        log::info!(
            "draining {} requests in flight",
            self.metrics.requests_in_flight()
        );
        self.drain().await;
        if let Some(archive) = &self.archive {
            archive.flush().await;
        }
        if let Some(journal) = &self.journal {
            journal.finish(FINAL_FLUSH).await;
        }
        if let Some(leases) = &self.leases {
            leases.release().await;
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.flush(FINAL_EXPORT).await;
        }
        if let Some(log) = &self.access_log {
            log.flush();
        }
        if let Some(folder) = &self.remove_at_exit {
            // What cannot be removed now, the system removes with its other temporary files.
            let _ = std::fs::remove_dir_all(folder);
        }
        // pingora would sleep for its whole grace period although nothing is left to wait for.
        std::process::exit(0);
    }
}

impl Lifecycle {
    /// Waits for the listeners, and says that the gateway is ready.
    async fn announce(&self) {
        for listen in &self.listen {
            wait_reachable(listen.addr).await;
        }
        self.admin.enter(LifecyclePhase::Ready);
        service_manager::notify_ready();
        // stdout is the access log's alone. A closed stderr is no reason not to serve.
        let _ = writeln!(std::io::stderr(), "{}", self.greeting);
    }

    async fn drain(&self) {
        if timeout(self.drain_timeout, self.wait_idle()).await.is_err() {
            log::warn!("server.drain_timeout is over: requests in flight end with an error");
            self.stopped.store(true, Ordering::Release);
            self.stop.notify_waiters();
            // Responses that cannot be ended with an error within a second are cut.
            let _ = timeout(Duration::from_secs(1), self.wait_idle()).await;
        }
        sleep(FINAL_FRAMES).await;
    }

    async fn wait_idle(&self) {
        while self.metrics.requests_in_flight() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn wait_reachable(addr: SocketAddr) {
    let ip = match addr.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let since = Instant::now();
    while tokio::net::TcpStream::connect((ip, addr.port()))
        .await
        .is_err()
    {
        sleep(Duration::from_millis(if since.elapsed().as_secs() < 1 {
            1
        } else {
            100
        }))
        .await;
    }
}

//! Puts it together: pingora's server, the listeners, and the services beside them.

mod bookkeeping;
pub(crate) mod descriptors;
mod keeping;
mod memory;
mod reload;
mod sharing;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use pingora::apps::HttpServerOptions;
use pingora::connectors::ConnectorOptions;
use pingora::listeners::tls::TlsSettings;
use pingora::listeners::{L4BufferSettings, ListenerConfig};
use pingora::protocols::http::v2::server::default_h2_options;
use pingora::server::configuration::ServerConf;
use pingora::server::{
    RunArgs, Server, ShutdownSignal, ShutdownSignalWatch, ShutdownWatch, UnixShutdownSignalWatch,
};
use pingora::services::background::{BackgroundService, background_service};
use pingora::services::listening::Service;
use pingora::tls;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use keeping::Keeping;
use reload::Reload;
use sharing::Sharing;

use crate::access::Leases;
use crate::admin::{self, Admin, Phase};
use crate::config::{AccessLogConfig, Config, Listen, TlsFiles};
use crate::images::{Files, TaskQueue, Tasks};
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::mock;
use crate::proxy::{AccessLog, ConversationStore, Gateway, HealthChecks, Listener, UpstreamPool};
use crate::runtime::Runtime;

/// Connections to upstreams that wait to be used again: as many as thousands of clients need at once, who would else
/// have them made anew after every lull. Never more than a quarter of all that may be open: a
/// request in flight takes two.
const POOLED_CONNECTIONS: usize = 8192;
/// Of each client connection, and filled with zeros when it opens: pingora's 64 KiB would be most of what a stream holds.
/// Bodies are read past it.
const READ_BUFFER: usize = 8 << 10;
const H2_STREAM_WINDOW: u32 = 1 << 20;
const H2_CONNECTION_WINDOW: u32 = 8 << 20;
/// Above our own limit, so that a longer header is answered instead of reset.
const H2_HEADER_LIMIT: u32 = 256 << 10;
const H2_IDLE: Duration = Duration::from_secs(300);

/// After the last request has ended, HTTP/2 connections still write their final frames.
const LAST_FRAMES: Duration = Duration::from_millis(50);

/// How long the last receipts may take to reach the books.
const LAST_RECEIPTS: Duration = Duration::from_secs(2);

/// What a run starts from.
pub struct Start {
    pub config: Config,
    /// Read again on SIGHUP; `None`: the embedded demo.
    pub file: Option<PathBuf>,
    /// The demo's backend, in this process.
    pub mock: Option<TcpListener>,
    /// Printed when the first request can be taken.
    pub greeting: String,
}

/// Serves until the process is told to leave.
pub fn run(start: Start) -> Result<()> {
    let server_settings = start.config.server.clone();
    for listen in &server_settings.listen {
        TcpListener::bind(listen.addr)
            .with_context(|| cannot_listen(listen.addr, "server.listen"))?;
    }
    let admin_listener = server_settings
        .admin
        .map(|addr| listener(addr, "server.admin"))
        .transpose()?;
    let access_log = match server_settings.access_log {
        AccessLogConfig::Off => None,
        AccessLogConfig::Json => Some(AccessLog::to_stdout().context("cannot start a thread")?),
    };
    let metrics = Arc::new(Metrics::new());
    let store = start.config.store.clone();
    let limits_store = start.config.limits_store.clone();
    let journal = store
        .as_ref()
        .map(|_| bookkeeping::open(&start.config.journal, &metrics))
        .transpose()?;
    let folder = start.config.journal.path.clone();
    let runtime = Arc::new(Runtime::new(start.config));
    let keeping = store
        .zip(journal.as_ref())
        .map(|(store, journal)| {
            let conversations = server_settings.conversations;
            let receipts = (journal, &*folder);
            Keeping::start(&store, conversations, &runtime, &metrics, receipts)
        })
        .transpose()?;
    let archive = keeping.as_ref().and_then(|keeping| keeping.archive.clone());
    let keyring = keeping.as_ref().map(|keeping| keeping.keyring.clone());
    let sharing = limits_store
        .map(|store| Sharing::start(&store, &metrics))
        .transpose()?;
    let leases = keeping.as_ref().map(|keeping| keeping.leases.clone());
    let admin = Arc::new(Admin::new(metrics.clone(), runtime.clone()));
    let stop = Arc::new(Notify::new());
    let armed = Arc::new(Semaphore::new(0));

    let conf = server_conf(server_settings.drain_timeout);
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let conf = server.configuration.clone();
    let stopped = Arc::new(AtomicBool::new(false));
    let tasks = keeping.as_ref().map(|keeping| keeping.store.clone());
    let tasks = tasks.map_or_else(Tasks::in_memory, Tasks::Stored);
    let desk = Arc::new(TaskQueue::new(runtime.clone(), tasks));
    let files = Arc::new(Files::new(runtime.snapshot().images.files.size));
    let gateway = || Gateway {
        runtime: runtime.clone(),
        metrics: metrics.clone(),
        keyring: keyring.clone(),
        shared_limits: sharing.as_ref().map(|sharing| sharing.limits.clone()),
        leases: leases.clone(),
        conversation_store: archive.clone(),
        access_log: access_log.clone(),
        journal: journal.clone(),
        upstream_pool: UpstreamPool::new(ConnectorOptions::from_server_conf(&conf)),
        stop: stop.clone(),
        stopped: stopped.clone(),
        task_queue: desk.clone(),
        files: files.clone(),
    };
    let painting = Painting {
        desk: desk.clone(),
        // With connections of its own: they belong to the runtime that made them.
        painter: Arc::new(gateway()),
    };
    server.add_service(background_service("image tasks", painting));
    let gateway = gateway();
    server.add_service(public_service(gateway, &conf, &server_settings.listen)?);
    server.add_service(background_service(
        "lifecycle",
        Lifecycle {
            admin: admin.clone(),
            metrics: metrics.clone(),
            access_log,
            archive,
            journal,
            leases,
            stop,
            stopped,
            armed: armed.clone(),
            listen: server_settings.listen,
            drain_timeout: server_settings.drain_timeout,
            greeting: start.greeting,
        },
    ));
    let checks = HealthChecks::new(runtime.clone(), ConnectorOptions::from_server_conf(&conf));
    server.add_service(background_service("health", Watching(checks)));
    let reload = Reload {
        runtime,
        metrics,
        keyring,
        armed: armed.clone(),
        file: start.file,
    };
    server.add_service(background_service("reload", reload));
    if let Some(listener) = admin_listener {
        let router = admin::router(admin);
        server.add_service(background_service("admin", Beside::new(listener, router)));
    }
    if let Some(listener) = start.mock {
        let router = mock::router();
        server.add_service(background_service("mock", Beside::new(listener, router)));
    }
    server.run(RunArgs {
        shutdown_signal: Box::new(Leave { armed }),
    });
    Ok(())
}

fn server_conf(drain_timeout: Duration) -> ServerConf {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let pooled = POOLED_CONNECTIONS.min(descriptors::raise() / 4);
    ServerConf {
        threads,
        // Of each thread, in pingora's words, though they are in one pool.
        upstream_keepalive_pool_size: (pooled / threads).max(1),
        // The lifecycle service leaves earlier; this is only the last resort.
        grace_period_seconds: Some(drain_timeout.as_secs() + 5),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    }
}

fn public_service(
    gateway: Gateway,
    conf: &Arc<ServerConf>,
    listen: &[Listen],
) -> Result<Service<Listener>> {
    let mut options = HttpServerOptions::default();
    options.h2c = true;
    options.h2_idle_timeout = Some(H2_IDLE);
    let mut h2_options = default_h2_options();
    h2_options.initial_window_size(H2_STREAM_WINDOW);
    h2_options.initial_connection_window_size(H2_CONNECTION_WINDOW);
    h2_options.max_header_list_size(H2_HEADER_LIMIT);
    let app = Listener::new(gateway, conf, options, h2_options);
    let mut service = Service::new("gateway".to_owned(), app);
    for Listen { addr, tls } in listen {
        let buffer = L4BufferSettings::default().read(READ_BUFFER);
        let mut listener = ListenerConfig::tcp(addr.to_string()).l4_buffer(buffer);
        if let Some(files) = tls {
            let settings = tls_settings(files).with_context(|| {
                let (cert, key) = (files.cert.display(), files.key.display());
                format!("cannot use {cert} and {key} for TLS")
            })?;
            listener = listener.tls(settings);
        }
        service.add_listener(listener);
    }
    Ok(service)
}

/// pingora reads the files again on a thread of its own, where a mistake is a panic: it is found here.
fn tls_settings(files: &TlsFiles) -> Result<TlsSettings> {
    let (cert, key) = (files.cert.to_string_lossy(), files.key.to_string_lossy());
    let (certs, secret) = tls::load_certs_and_key_files(&cert, &key)?
        .context("the one needs a PEM certificate, the other a PEM private key")?;
    tls::install_default_crypto_provider();
    tls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certs, secret)?;
    let mut settings = TlsSettings::intermediate(&cert, &key)?;
    settings.enable_h2();
    Ok(settings)
}

fn listener(addr: SocketAddr, setting: &str) -> Result<TcpListener> {
    let listener = TcpListener::bind(addr).with_context(|| cannot_listen(addr, setting))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn cannot_listen(addr: SocketAddr, setting: &str) -> String {
    format!("cannot listen on {addr}: stop what uses it, or change {setting} in a config (-c FILE)")
}

/// Who listens for signals: the way out and the reload. One that comes earlier kills the process.
const LISTENERS_FOR_SIGNALS: u32 = 2;

/// The signals that end the process, as pingora knows them.
struct Leave {
    armed: Arc<Semaphore>,
}

#[async_trait]
impl ShutdownSignalWatch for Leave {
    async fn recv(&self) -> ShutdownSignal {
        let armed = async { self.armed.add_permits(1) };
        match tokio::join!(biased; UnixShutdownSignalWatch.recv(), armed).0 {
            // There is no second process to hand the listeners to.
            ShutdownSignal::GracefulUpgrade => ShutdownSignal::GracefulTerminate,
            signal => signal,
        }
    }
}

/// From the first listener to the last request.
struct Lifecycle {
    admin: Arc<Admin>,
    metrics: Arc<Metrics>,
    access_log: Option<AccessLog>,
    archive: Option<Arc<ConversationStore>>,
    journal: Option<Arc<Journal>>,
    leases: Option<Arc<Leases>>,
    stop: Arc<Notify>,
    stopped: Arc<AtomicBool>,
    armed: Arc<Semaphore>,
    listen: Vec<Listen>,
    drain_timeout: Duration,
    greeting: String,
}

#[async_trait]
impl BackgroundService for Lifecycle {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        for listen in &self.listen {
            until_reachable(listen.addr).await;
        }
        // Nobody closes it, so this only ever waits.
        let _ = self.armed.acquire_many(LISTENERS_FOR_SIGNALS).await;
        self.admin.enter(Phase::Ready);
        // A closed stdout is no reason not to serve.
        let _ = writeln!(std::io::stdout(), "{}", self.greeting);
        tokio::select! {
            changed = shutdown.changed() => if changed.is_err() {
                return;
            },
            never = memory::give_back() => match never {},
        }
        self.admin.enter(Phase::Draining);
        log::info!(
            "draining {} requests in flight",
            self.metrics.requests_in_flight()
        );
        self.drain().await;
        if let Some(archive) = &self.archive {
            archive.flush().await;
        }
        if let Some(journal) = &self.journal {
            journal.finish(LAST_RECEIPTS).await;
        }
        if let Some(leases) = &self.leases {
            leases.leave().await;
        }
        if let Some(log) = &self.access_log {
            log.flush();
        }
        // pingora would sleep for its whole grace period although nothing is left to wait for.
        std::process::exit(0);
    }
}

impl Lifecycle {
    async fn drain(&self) {
        if timeout(self.drain_timeout, self.until_idle())
            .await
            .is_err()
        {
            log::warn!("server.drain_timeout is over: requests in flight end with an error");
            self.stopped.store(true, Ordering::Release);
            self.stop.notify_waiters();
            // What cannot be told an error within a second is cut.
            let _ = timeout(Duration::from_secs(1), self.until_idle()).await;
        }
        sleep(LAST_FRAMES).await;
    }

    async fn until_idle(&self) {
        while self.metrics.requests_in_flight() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn until_reachable(addr: SocketAddr) {
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

/// The health checks, until the process leaves.
struct Watching(HealthChecks);

#[async_trait]
impl BackgroundService for Watching {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        tokio::select! {
            () = self.0.run() => {}
            _ = shutdown.changed() => {}
        }
    }
}

/// The work on image tasks, until the process leaves.
struct Painting {
    desk: Arc<TaskQueue>,
    painter: Arc<Gateway>,
}

#[async_trait]
impl BackgroundService for Painting {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let leaving = async {
            // Whoever could say otherwise is gone.
            let _ = shutdown.changed().await;
        };
        self.desk.clone().work(self.painter.clone(), leaving).await;
    }
}

/// A small HTTP server beside the public one.
struct Beside {
    listener: Mutex<Option<TcpListener>>,
    router: axum::Router,
}

impl Beside {
    fn new(listener: TcpListener, router: axum::Router) -> Beside {
        Beside {
            listener: Mutex::new(Some(listener)),
            router,
        }
    }
}

#[async_trait]
impl BackgroundService for Beside {
    async fn start(&self, _shutdown: ShutdownWatch) {
        // It stays up while the gateway drains: who watches wants to see that.
        let taken = self
            .listener
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(Ok(listener)) = taken.map(tokio::net::TcpListener::from_std) else {
            return;
        };
        if let Err(error) = axum::serve(listener, self.router.clone()).await {
            log::error!("a listener beside the gateway failed: {error}");
        }
    }
}

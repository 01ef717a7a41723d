//! Starts the process: pingora's server, the listeners, and the services beside them.

mod admin_service;
mod background;
mod certificates;
pub(crate) mod fd_limit;
mod journal_service;
mod lifecycle;
mod limits_service;
mod memory;
mod reload;
mod signals;
mod store_service;
mod write_timeout;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pingora::apps::HttpServerOptions;
use pingora::connectors::ConnectorOptions;
use pingora::listeners::{L4BufferSettings, ListenerConfig};
use pingora::protocols::http::v2::server::default_h2_options;
use pingora::server::configuration::ServerConf;
use pingora::server::{RunArgs, Server};
use pingora::services::background::background_service;
use pingora::services::listening::Service;
use tokio::sync::Notify;

use admin_service::AdminService;
use background::{
    CredentialService, DiscoveryService, HealthCheckService, ImageTaskService, MockService,
};
use certificates::Certificates;
use lifecycle::Lifecycle;
use limits_service::LimitsService;
use reload::Reload;
use signals::Signals;
use store_service::StoreService;

pub use certificates::certificate_problems;

use crate::access::FailedAttempts;
use crate::admin::{self, Admin};
use crate::config::{AccessLogConfig, Config, Listen};
use crate::credentials::{CredentialRefresher, SourceFetcher};
use crate::images::{FileStore, TaskQueue, TaskStore};
use crate::metrics::Metrics;
use crate::mock;
use crate::proxy::{
    AccessLog, ConnectionAdmission, Gateway, HealthChecks, Listener, ModelDiscovery, UpstreamPool,
};
use crate::runtime::Runtime;

/// Maximum number of idle upstream connections in the pool, enough for thousands of concurrent clients. Never more than
/// a quarter of the file descriptors: a request in flight takes two.
const MAX_IDLE_CONNECTIONS: usize = 8192;
/// Read buffer of a client connection. pingora's default of 64 KiB would be most of the memory of a stream; bodies
/// bypass it.
const READ_BUFFER_SIZE: usize = 8 << 10;
const H2_STREAM_WINDOW: u32 = 1 << 20;
const H2_CONNECTION_WINDOW: u32 = 8 << 20;
/// Above the gateway's own limit, so that a longer header gets a response instead of a reset.
const H2_HEADER_LIMIT: u32 = 256 << 10;
/// As long as an idle connection of HTTP/1.1 is kept.
const H2_IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Files that are neither client nor upstream connections: the admin port, the store, the journal, the log.
const OTHER_FILES: usize = 64;

/// What a run of the gateway starts from.
pub struct StartOptions {
    pub config: Config,
    /// The config file, read again on SIGHUP; `None`: the embedded demo.
    pub file: Option<PathBuf>,
    /// The listener of the mock backend of the demo.
    pub mock: Option<TcpListener>,
    /// Printed to stderr when the gateway is ready.
    pub greeting: String,
}

/// Serves until a signal ends the process.
pub fn run(start: StartOptions) -> Result<()> {
    let signals = Signals::install()?;
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
        .map(|_| journal_service::open(&start.config.journal, &metrics))
        .transpose()?;
    let folder = start.config.journal.path.clone();
    let min_free = start.config.journal.min_free;
    let runtime = Arc::new(Runtime::new(start.config));
    let store_service = store
        .zip(journal.as_ref())
        .map(|(store, journal)| {
            let conversations = (server_settings.conversations, min_free);
            let journal = (journal, &*folder);
            StoreService::start(&store, conversations, &runtime, &metrics, journal)
        })
        .transpose()?;
    let archive = store_service
        .as_ref()
        .and_then(|store_service| store_service.archive.clone());
    let keyring = store_service
        .as_ref()
        .map(|store_service| store_service.keyring.clone());
    let limits_service = limits_store
        .map(|store| LimitsService::start(&store, &metrics))
        .transpose()?;
    let leases = store_service
        .as_ref()
        .map(|store_service| store_service.leases.clone());
    log_proxies(&runtime);
    let admin = Arc::new(Admin::new(metrics.clone(), runtime.clone()));
    let stop = Arc::new(Notify::new());

    let open_files = fd_limit::raise();
    let conf = server_conf(server_settings.drain_timeout, open_files);
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let conf = server.configuration.clone();
    let timeouts = server_settings.timeouts;
    let stopped = Arc::new(AtomicBool::new(false));
    let tasks = store_service
        .as_ref()
        .map(|store_service| store_service.store.clone());
    let tasks = tasks.map_or_else(TaskStore::in_memory, TaskStore::Database);
    let desk = Arc::new(TaskQueue::new(runtime.clone(), tasks));
    let files = Arc::new(FileStore::new(runtime.snapshot().images.files.size));
    let gateway = || Gateway {
        runtime: runtime.clone(),
        metrics: metrics.clone(),
        keyring: keyring.clone(),
        failed_attempts: FailedAttempts::default(),
        shared_limits: limits_service
            .as_ref()
            .map(|limits_service| limits_service.limits.clone()),
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
    let image_tasks = ImageTaskService {
        queue: desk.clone(),
        // With a connection pool of its own: connections belong to the runtime that made them.
        worker: Arc::new(gateway()),
    };
    server.add_service(background_service("image tasks", image_tasks));
    let gateway = gateway();
    let admission = ConnectionAdmission::new(runtime.clone(), default_max_connections(open_files));
    let (service, certificates) =
        public_service(gateway, &conf, &server_settings.listen, admission)?;
    server.add_service(service);
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
            listen: server_settings.listen,
            drain_timeout: server_settings.drain_timeout,
            greeting: start.greeting,
        },
    ));
    let checks = HealthChecks::new(runtime.clone(), ConnectorOptions::from_server_conf(&conf));
    server.add_service(background_service("health", HealthCheckService(checks)));
    let refresher = CredentialRefresher::new(runtime.clone(), SourceFetcher::default());
    server.add_service(background_service(
        "credentials",
        CredentialService(refresher),
    ));
    let options = ConnectorOptions::from_server_conf(&conf);
    let discovery = ModelDiscovery::new(runtime.clone(), options);
    server.add_service(background_service("discovery", DiscoveryService(discovery)));
    let reload = Reload {
        runtime,
        metrics,
        keyring,
        signals: signals.clone(),
        certificates,
        file: start.file,
    };
    server.add_service(background_service("reload", reload));
    if let Some(listener) = admin_listener {
        let service = AdminService::new(listener, admin::router(admin), timeouts);
        server.add_service(background_service("admin", service));
    }
    if let Some(listener) = start.mock {
        let router = mock::router();
        server.add_service(background_service(
            "mock",
            MockService::new(listener, router),
        ));
    }
    server.run(RunArgs {
        shutdown_signal: Box::new(signals),
    });
    Ok(())
}

/// Says which upstreams are reached through a proxy: the environment may name one that nobody thinks of.
fn log_proxies(runtime: &Runtime) {
    for upstream in &runtime.snapshot().upstreams {
        if let Some(proxy) = &upstream.proxy {
            log::info!(
                "upstream {}: through the proxy {}",
                upstream.name,
                proxy.name
            );
        }
    }
}

/// How many client connections there may be by default: each request also needs an upstream connection.
fn default_max_connections(open_files: usize) -> u64 {
    (open_files.saturating_sub(OTHER_FILES) / 2).max(16) as u64
}

fn server_conf(drain_timeout: Duration, open_files: usize) -> ServerConf {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let pooled = MAX_IDLE_CONNECTIONS.min(open_files / 4);
    ServerConf {
        threads,
        // pingora counts this per thread.
        upstream_keepalive_pool_size: (pooled / threads).max(1),
        // The lifecycle service exits earlier; this is only the last resort.
        grace_period_seconds: Some(drain_timeout.as_secs() + 5),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    }
}

fn public_service(
    gateway: Gateway,
    conf: &Arc<ServerConf>,
    listen: &[Listen],
    admission: ConnectionAdmission,
) -> Result<(Service<Listener>, Certificates)> {
    let mut options = HttpServerOptions::default();
    options.h2c = true;
    options.h2_idle_timeout = Some(H2_IDLE_TIMEOUT);
    let mut h2_options = default_h2_options();
    h2_options.initial_window_size(H2_STREAM_WINDOW);
    h2_options.initial_connection_window_size(H2_CONNECTION_WINDOW);
    h2_options.max_header_list_size(H2_HEADER_LIMIT);
    let before_tls = Arc::new(admission.clone());
    let app = Listener::new(gateway, conf, options, h2_options, admission);
    let mut service = Service::new("gateway".to_owned(), app);
    service.endpoints().set_pre_tls_callback(before_tls);
    let mut certificates = Certificates::default();
    for Listen { addr, tls } in listen {
        let buffer = L4BufferSettings::default().read(READ_BUFFER_SIZE);
        let mut listener = ListenerConfig::tcp(addr.to_string()).l4_buffer(buffer);
        if let Some(files) = tls {
            listener = listener.tls(certificates.listen(*addr, files)?);
        }
        service.add_listener(listener);
    }
    Ok((service, certificates))
}

fn listener(addr: SocketAddr, setting: &str) -> Result<TcpListener> {
    let listener = TcpListener::bind(addr).with_context(|| cannot_listen(addr, setting))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn cannot_listen(addr: SocketAddr, setting: &str) -> String {
    format!("cannot listen on {addr}: stop what uses it, or change {setting} in a config (-c FILE)")
}

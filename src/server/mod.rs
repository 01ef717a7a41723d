//! Starts the process: pingora's server, the listeners, and the services beside them.

mod background;
mod certificates;
mod console_service;
pub(crate) mod fd_limit;
mod journal_service;
mod lifecycle;
mod limits_service;
mod memory;
mod process_state;
mod reload;
mod service_listener;
mod service_manager;
mod signals;
mod store_service;
mod system_certificates;
mod telemetry_service;
mod upgrade;
mod web_service;
mod write_timeout;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use pingora::apps::HttpServerOptions;
use pingora::connectors::ConnectorOptions;
use pingora::listeners::{L4BufferSettings, ListenerConfig};
use pingora::protocols::http::v2::server::default_h2_options;
use pingora::server::configuration::{Opt, ServerConf};
use pingora::server::{RunArgs, Server};
use pingora::services::background::background_service;
use pingora::services::listening::Service;

use background::{
    CredentialService, DiscoveryService, HealthCheckService, ImageTaskService, MockService,
};
use certificates::Certificates;
use console_service::ConsoleService;
use lifecycle::Lifecycle;
use process_state::ProcessState;
use reload::Reload;
use service_listener::{ServiceListener, cannot_listen};
use signals::{ShutdownWatcher, Signals};
use upgrade::Handover;
use web_service::WebService;

pub use certificates::certificate_problems;

use crate::admin::{self, Admin};
use crate::config::{ClientTimeouts, Config, ConsoleConfig, Listen, ServerConfig, StoreConfig};
use crate::console::GatewayAccess;
use crate::credentials::{CredentialRefresher, SourceFetcher};
use crate::mock;
use crate::proxy::{
    ConnectionAdmission, Gateway, HealthChecks, ListenEndpoint, Listener, ModelDiscovery,
};
use crate::runtime::Runtime;

/// Maximum number of idle upstream connections in the pool, enough for thousands of concurrent clients. Never more than
/// an eighth of the file descriptors.
const MAX_IDLE_CONNECTIONS: usize = 8192;
/// Read buffer of a client connection. pingora's default of 64 KiB would be most of the memory of a stream; bodies
/// bypass it.
const READ_BUFFER_SIZE: usize = 8 << 10;
const H2_STREAM_WINDOW: u32 = 1 << 20;
const H2_CONNECTION_WINDOW: u32 = 8 << 20;
/// Above the gateway's own limit, so that a longer header gets a response instead of a reset.
const H2_HEADER_LIMIT: u32 = 256 << 10;
/// More than any monitoring needs at once.
const ADMIN_CONNECTIONS: usize = 32;
/// As long as an idle connection of HTTP/1.1 is kept.
const H2_IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Files that are neither upstream connections nor client connections with a place: handshakes that wait for one, the admin
/// port, the store, the journal, the log.
const OTHER_FILES: usize = 80;
/// More files of the console than its connections: its listener and its own connections to the store.
const CONSOLE_FILES: usize = 16;
/// Connections of browsers to the console, at most; each has up to six.
const MAX_CONSOLE_CONNECTIONS: usize = 512;

/// What a run of the gateway starts from.
pub struct StartOptions {
    pub config: Config,
    /// The config file, read again on SIGHUP; `None`: the embedded demo.
    pub file: Option<PathBuf>,
    /// The listener of the mock backend of the demo.
    pub mock: Option<TcpListener>,
    /// A folder of the demo that nobody needs afterwards.
    pub remove_at_exit: Option<PathBuf>,
    /// Printed to stderr when the gateway is ready.
    pub greeting: String,
}

/// Serves until a signal ends the process.
pub fn run(start: StartOptions) -> Result<()> {
    let (signals, handover) = (Signals::install()?, Handover::from_environment());
    system_certificates::check()?;
    let settings = start.config.server.clone();
    if !handover.has_predecessor() {
        check_addresses(&settings.listen)?;
    }
    let admin_listener = settings
        .admin
        .map(|addr| ServiceListener::new(addr, "server.admin", &handover))
        .transpose()?;
    let console = open_console(&start.config, &handover)?;
    let state = ProcessState::open(start.config, &handover)?;
    log_proxies(&state.runtime);

    let (browsers, open_files) = divide_files(fd_limit::raise(), console.is_some());
    let conf = server_conf(settings.drain_timeout, open_files, &handover);
    let mut server = Server::new_with_opt_and_conf(pingora_options(&handover), conf);
    let conf = server.configuration.clone();
    add_image_tasks(&mut server, &state);
    let most = default_max_connections(open_files);
    let runtime_state = &state.runtime.state;
    runtime_state.set_default_places(default_max_in_flight(open_files));
    let admission = ConnectionAdmission::new(state.runtime.clone(), most);
    let gateway = state.gateway(&conf);
    let (service, mut certificates) = public_service(gateway, &conf, &settings.listen, admission)?;
    server.add_service(service);
    if let Some(console) = console {
        let service = console_service(console, &state, &mut certificates, &settings, browsers)?;
        server.add_service(background_service("console", service));
    }
    let admin = Arc::new(Admin::new(
        state.metrics.clone(),
        state.runtime.clone(),
        state.keyring(),
    ));
    let lifecycle = Lifecycle {
        greeting: start.greeting,
        remove_at_exit: start.remove_at_exit,
        ..lifecycle(&state, admin.clone(), &settings)
    };
    server.add_service(background_service("lifecycle", lifecycle));
    let watcher = ShutdownWatcher {
        signals: signals.clone(),
        admin: admin.clone(),
        handover: handover.clone(),
        delay: settings.shutdown_delay,
    };
    add_upstream_services(&mut server, &state.runtime);
    let reload = Reload {
        runtime: state.runtime.clone(),
        metrics: state.metrics.clone(),
        keyring: state.keyring(),
        signals,
        certificates,
        file: start.file,
    };
    server.add_service(background_service("reload", reload));
    if let Some(listener) = admin_listener {
        add_admin_port(&mut server, listener, admin, settings.timeouts);
    }
    if let Some(listener) = start.mock {
        let service = MockService::new(listener, mock::router());
        server.add_service(background_service("mock", service));
    }
    // Whatever could fail has not: a predecessor hands its listeners over now.
    server.bootstrap();
    handover.finish();
    server.run(RunArgs {
        shutdown_signal: Box::new(watcher),
    });
    Ok(())
}

/// The console, with as many connections as it may have.
fn console_service(
    (console, store, listener): (ConsoleConfig, StoreConfig, ServiceListener),
    state: &ProcessState,
    certificates: &mut Certificates,
    settings: &ServerConfig,
    max_connections: usize,
) -> Result<ConsoleService> {
    let Listen { addr, tls } = &console.listen;
    let tls = tls
        .as_ref()
        .map(|files| certificates.acceptor(*addr, files));
    Ok(ConsoleService {
        tls: tls.transpose()?,
        console,
        store,
        runtime: state.runtime.clone(),
        metrics: state.metrics.clone(),
        gateway: state
            .keyring()
            .and_then(|keyring| GatewayAccess::new(keyring, &settings.listen)),
        listener: Mutex::new(Some(listener)),
        timeouts: settings.timeouts,
        max_connections,
    })
}

fn add_image_tasks(server: &mut Server, state: &ProcessState) {
    let image_tasks = ImageTaskService {
        queue: state.task_queue.clone(),
        worker: Arc::new(state.gateway(&server.configuration)),
    };
    server.add_service(background_service("image tasks", image_tasks));
}

fn add_admin_port(
    server: &mut Server,
    listener: ServiceListener,
    admin: Arc<Admin>,
    timeouts: ClientTimeouts,
) {
    let router = admin::router(admin);
    let service = WebService::new("admin port", listener, router, timeouts, ADMIN_CONNECTIONS);
    server.add_service(background_service("admin", service));
}

/// The service that drains the gateway at its end.
fn lifecycle(state: &ProcessState, admin: Arc<Admin>, settings: &ServerConfig) -> Lifecycle {
    Lifecycle {
        admin,
        metrics: state.metrics.clone(),
        access_log: state.access_log.clone(),
        telemetry: state.telemetry(),
        archive: state.conversation_store(),
        journal: state.journal.clone(),
        leases: state.leases(),
        stop: state.stop.clone(),
        stopped: state.stopped.clone(),
        listen: settings.listen.clone(),
        drain_timeout: settings.drain_timeout,
        greeting: String::new(),
        remove_at_exit: None,
    }
}

/// Adds what is done for upstreams beside requests: health checks, credentials, lists of models.
fn add_upstream_services(server: &mut Server, runtime: &Arc<Runtime>) {
    let options = ConnectorOptions::from_server_conf(&server.configuration);
    let checks = HealthChecks::new(runtime.clone(), options.clone());
    server.add_service(background_service("health", HealthCheckService(checks)));
    let refresher = CredentialRefresher::new(runtime.clone(), SourceFetcher::default());
    let credentials = CredentialService(refresher);
    server.add_service(background_service("credentials", credentials));
    let discovery = ModelDiscovery::new(runtime.clone(), options);
    server.add_service(background_service("discovery", DiscoveryService(discovery)));
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

/// The connections of the console, and the files that are left to everything else.
fn divide_files(open_files: usize, has_console: bool) -> (usize, usize) {
    let browsers = console_connections(open_files);
    match has_console {
        true => (
            browsers,
            open_files.saturating_sub(browsers + CONSOLE_FILES),
        ),
        false => (0, open_files),
    }
}

/// How many connections of browsers there may be: few where few files may be open.
fn console_connections(open_files: usize) -> usize {
    (open_files / 16).clamp(16, MAX_CONSOLE_CONNECTIONS)
}

/// How many client connections there may be by default: each request also needs an upstream connection.
fn default_max_connections(open_files: usize) -> u64 {
    (open_files.saturating_sub(OTHER_FILES) / 2).max(16) as u64
}

/// How many requests may be in flight by default: one connection of HTTP/2 can have many, and each needs an upstream
/// connection. What is left is for idle ones.
fn default_max_in_flight(open_files: usize) -> u64 {
    (open_files.saturating_sub(OTHER_FILES) / 8 * 3).max(16) as u64
}

fn max_idle_connections(open_files: usize) -> usize {
    open_files.saturating_sub(OTHER_FILES) / 8
}

/// Has pingora take over the listeners of a predecessor.
fn pingora_options(handover: &Handover) -> Option<Opt> {
    handover.has_predecessor().then(|| Opt {
        upgrade: true,
        ..Opt::default()
    })
}

fn server_conf(drain_timeout: Duration, open_files: usize, handover: &Handover) -> ServerConf {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let pooled = MAX_IDLE_CONNECTIONS.min(max_idle_connections(open_files));
    ServerConf {
        threads,
        // pingora counts this per thread.
        upstream_keepalive_pool_size: (pooled / threads).max(1),
        // The lifecycle service exits earlier; this is only the last resort.
        grace_period_seconds: Some(drain_timeout.as_secs() + 5),
        graceful_shutdown_timeout_seconds: Some(1),
        upgrade_sock: handover.socket().display().to_string(),
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
    let mut certificates = Certificates::default();
    let mut endpoints = Vec::new();
    for Listen { addr, tls } in listen {
        let tls = tls.as_ref().map(|files| certificates.listen(*addr, files));
        endpoints.push(ListenEndpoint::new(*addr, tls.transpose()?));
    }
    let app = Listener::new(endpoints, gateway, conf, options, h2_options, admission);
    let mut service = Service::new("gateway".to_owned(), app);
    for Listen { addr, .. } in listen {
        let buffer = L4BufferSettings::default().read(READ_BUFFER_SIZE);
        service.add_listener(ListenerConfig::tcp(addr.to_string()).l4_buffer(buffer));
    }
    Ok((service, certificates))
}

/// Listens for the console, where the config has one and a store for it.
fn open_console(
    config: &Config,
    handover: &Handover,
) -> Result<Option<(ConsoleConfig, StoreConfig, ServiceListener)>> {
    let Some((console, store)) = config.console.clone().zip(config.store.clone()) else {
        return Ok(None);
    };
    let listener = ServiceListener::new(console.listen.addr, "console.listen", handover)?;
    Ok(Some((console, store, listener)))
}

/// Fails if an address is in use: pingora would end the process without a word.
fn check_addresses(listen: &[Listen]) -> Result<()> {
    for Listen { addr, .. } in listen {
        TcpListener::bind(addr).with_context(|| cannot_listen(*addr, "server.listen"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_connections_together_leave_files_to_the_rest() {
        for (all_files, has_console) in [256, 400, 500, 1024, 1 << 20]
            .into_iter()
            .flat_map(|files| [(files, false), (files, true)])
        {
            let (_, open_files) = divide_files(all_files, has_console);
            let browsers = all_files - open_files;
            let clients = default_max_connections(open_files);
            let (in_flight, idle) = (
                default_max_in_flight(open_files),
                max_idle_connections(open_files),
            );
            let all = clients + in_flight + (idle + OTHER_FILES) as u64;
            let all = all + browsers as u64;
            assert!(all <= all_files as u64, "{all} of {all_files}");
        }
    }
}

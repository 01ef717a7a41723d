//! The log on stderr: its level, and what of pingora's is left out.

use env_logger::{Builder, Env, Logger};
use log::{LevelFilter, Log, Metadata, Record};

/// What pingora says of connections that end before they have said anything, as the probes of load balancers do.
const CLOSED_EARLY: [&str; 3] = [
    "unexpected end of file",
    "Connection reset by peer",
    "Broken pipe",
];

/// The modules of pingora's core that accept connections.
const ACCEPTING: [&str; 3] = ["services::listening", "apps", "protocols::tls"];

/// Starts the log; `RUST_LOG` sets its level.
pub(super) fn start() {
    let filter = Env::default().default_filter_or("warn,omniglot=info");
    // Below `warn`, pingora logs request headers, keys included.
    let logger = Builder::from_env(filter)
        .filter_module("pingora_core", LevelFilter::Warn)
        // Every failure that a request can have is logged by its hooks.
        .filter_module("pingora_proxy", LevelFilter::Off)
        .build();
    let level = logger.filter();
    // It fails only where a logger is set already.
    if log::set_boxed_logger(Box::new(ServerLog(logger))).is_ok() {
        log::set_max_level(level);
    }
}

struct ServerLog(Logger);

impl Log for ServerLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.0.matches(record) && !is_probe(record) {
            self.0.log(record);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// Tells whether a record is about a connection that was closed before it was used.
fn is_probe(record: &Record<'_>) -> bool {
    let Some(("pingora_core", module)) = record.target().split_once("::") else {
        return false;
    };
    let mut accepting = ACCEPTING.iter();
    accepting.any(|accepting| module.starts_with(accepting)) && {
        let text = record.args().to_string();
        CLOSED_EARLY.iter().any(|words| text.contains(words))
    }
}

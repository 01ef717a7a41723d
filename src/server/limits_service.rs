//! Connects to the Redis of the shared limits before the first request, where it answers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use pingora::tls;

use crate::access::SharedLimits;
use crate::config::LimitsStore;
use crate::metrics::Metrics;

/// Time that the start waits for Redis; after that the gateway serves without it.
const START_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct LimitsService {
    pub(super) limits: Arc<SharedLimits>,
    /// The runtime of the connection.
    _tasks: tokio::runtime::Runtime,
}

impl LimitsService {
    pub(super) fn start(settings: &LimitsStore, metrics: &Arc<Metrics>) -> Result<LimitsService> {
        // Used by `rediss`.
        tls::install_default_crypto_provider();
        let tasks = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("limits")
            .enable_all()
            .build()
            .context("cannot start the runtime of shared limits")?;
        let (limits, running) = SharedLimits::new(settings, metrics)
            .map_err(|reason| anyhow!("cannot use {settings} (limits_store): {reason}"))?;
        tasks.spawn(running);
        tasks.block_on(limits.ready(START_TIMEOUT));
        Ok(LimitsService {
            limits: Arc::new(limits),
            _tasks: tasks,
        })
    }
}

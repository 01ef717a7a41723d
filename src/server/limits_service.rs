//! Limits that other gateways keep too: their Redis is connected before the first request where it can be.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use pingora_core::tls;

use crate::access::SharedLimits;
use crate::config::LimitsStore;
use crate::metrics::Metrics;

/// How long the start waits for it; after that the gateway serves without it.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Sharing {
    pub(super) limits: Arc<SharedLimits>,
    /// The connection lives here, and ends with it.
    _tasks: tokio::runtime::Runtime,
}

impl Sharing {
    pub(super) fn start(settings: &LimitsStore, metrics: &Arc<Metrics>) -> Result<Sharing> {
        // `rediss` takes the one that everything else here uses.
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
        tasks.block_on(limits.ready(PATIENCE));
        Ok(Sharing {
            limits: Arc::new(limits),
            _tasks: tasks,
        })
    }
}

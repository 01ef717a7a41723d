//! Another config in the place of the one in force, without a restart.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::access::Keyring;
use crate::config;
use crate::metrics::Metrics;
use crate::runtime::Runtime;

/// SIGHUP: a good new config takes over, a bad one is refused and the old one stays.
pub(super) struct Reload {
    pub(super) runtime: Arc<Runtime>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) keyring: Option<Arc<Keyring>>,
    pub(super) armed: Arc<Semaphore>,
    pub(super) file: Option<PathBuf>,
}

#[async_trait]
impl BackgroundService for Reload {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let hangup = signal(SignalKind::hangup());
        self.armed.add_permits(1);
        let Ok(mut hangup) = hangup else {
            log::error!("SIGHUP cannot be listened for: the config cannot be reloaded");
            return;
        };
        loop {
            tokio::select! {
                _ = hangup.recv() => self.reload(),
                _ = shutdown.changed() => return,
            }
        }
    }
}

impl Reload {
    fn reload(&self) {
        let Some(file) = &self.file else {
            log::warn!("the embedded demo has no file to reload");
            return;
        };
        let loaded = config::load(file, &config::process_env);
        let taken = loaded.is_ok();
        match loaded {
            Ok(config) => {
                for trap in config::warnings(&config) {
                    log::warn!("{trap}");
                }
                for setting in self.runtime.reload(config) {
                    log::warn!("{setting} has changed: that takes effect after a restart");
                }
                if let Some(keyring) = &self.keyring {
                    keyring.note_reload(&self.runtime.snapshot());
                }
                log::info!("{} is in force", file.display());
            }
            Err(problems) => {
                for problem in problems {
                    log::error!("{problem}");
                }
                log::error!("{} is refused, the old config stays", file.display());
            }
        }
        // Last: who sees the count sees the outcome.
        self.metrics.reloaded(taken);
    }
}

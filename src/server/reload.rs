//! Reloads the config and the certificates on SIGHUP, without a restart.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

use super::certificates::{Certificates, certificate_problems};
use super::service_manager::notify_status;
use super::signals::Signals;
use crate::access::Keyring;
use crate::config;
use crate::metrics::Metrics;
use crate::runtime::Runtime;

/// Reloads on SIGHUP: a valid config takes over, an invalid one is refused and the old one stays.
pub(super) struct Reload {
    pub(super) runtime: Arc<Runtime>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) keyring: Option<Arc<Keyring>>,
    pub(super) signals: Signals,
    pub(super) certificates: Certificates,
    pub(super) file: Option<PathBuf>,
}

#[async_trait]
impl BackgroundService for Reload {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            tokio::select! {
                () = self.signals.reload_requested() => self.reload(),
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
        let loaded = loaded.and_then(|config| match certificate_problems(&config, file) {
            problems if problems.is_empty() => Ok(config),
            problems => Err(problems),
        });
        let taken = loaded.is_ok();
        match loaded {
            Ok(config) => {
                for warning in &config.warnings {
                    log::warn!("{warning}");
                }
                self.certificates.reload(&config);
                for setting in self.runtime.reload(config) {
                    log::warn!("{setting} has changed: that takes effect after a restart");
                }
                if let Some(keyring) = &self.keyring {
                    keyring.on_reload(&self.runtime.snapshot());
                }
                log::info!("{} is in force", file.display());
                notify_status(&format!("{} is in force", file.display()));
            }
            Err(problems) => {
                for problem in &problems {
                    log::error!("{problem}");
                }
                if let Some(first) = problems.first() {
                    notify_status(&format!("the old config stays: {first}"));
                }
                self.runtime.set_refused(problems);
                log::error!("{} is refused, the old config stays", file.display());
            }
        }
        // Last, so that the new config is in force when the metric changes.
        self.metrics.record_reload(taken);
    }
}

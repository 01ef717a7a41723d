//! What the services of the process share: the runtime, the store, the journal, and what gateways are made of.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use pingora::connectors::ConnectorOptions;
use pingora::server::configuration::ServerConf;
use tokio::sync::Notify;

use super::journal_service;
use super::limits_service::LimitsService;
use super::store_service::StoreService;
use super::telemetry_service::TelemetryService;
use super::upgrade::Handover;
use crate::access::{FailedAttempts, Keyring, Leases};
use crate::config::{AccessLogConfig, Config};
use crate::images::{FileStore, TaskQueue, TaskStore};
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::proxy::{AccessLog, ConversationStore, Gateway, UpstreamPool};
use crate::runtime::Runtime;
use crate::telemetry::Telemetry;

pub(super) struct ProcessState {
    pub(super) runtime: Arc<Runtime>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) access_log: Option<AccessLog>,
    /// `None`: there is no store.
    pub(super) journal: Option<Arc<Journal>>,
    store: Option<StoreService>,
    limits: Option<LimitsService>,
    telemetry: Option<TelemetryService>,
    pub(super) task_queue: Arc<TaskQueue>,
    files: Arc<FileStore>,
    /// Notified when draining has taken long enough.
    pub(super) stop: Arc<Notify>,
    pub(super) stopped: Arc<AtomicBool>,
}

impl ProcessState {
    /// Opens the journal, the store and the shared limits that the config names.
    pub(super) fn open(config: Config, handover: &Handover) -> Result<ProcessState> {
        let access_log = match config.server.access_log {
            AccessLogConfig::Off => None,
            AccessLogConfig::Json => Some(AccessLog::to_stdout().context("cannot start a thread")?),
        };
        let metrics = Arc::new(Metrics::new());
        let (store, limits) = (config.store.clone(), config.limits_store.clone());
        let telemetry = config.telemetry.as_ref();
        let telemetry = telemetry.map(|settings| TelemetryService::start(settings, &metrics));
        let telemetry = telemetry.transpose()?;
        let open_journal = |_| journal_service::open(&config.journal, &metrics, handover);
        let journal = store.as_ref().map(open_journal).transpose()?;
        let journal_settings = config.journal.clone();
        let conversations = (config.server.conversations, config.journal.min_free);
        let runtime = Arc::new(Runtime::new(config));
        let store = match store.zip(journal.as_ref()) {
            Some((store, journal)) => {
                let journal = (journal, &journal_settings);
                let started =
                    StoreService::start(&store, conversations, &runtime, &metrics, journal);
                Some(started?)
            }
            None => None,
        };
        let limits = limits.map(|limits| LimitsService::start(&limits, &metrics));
        let limits = limits.transpose()?;
        let tasks = store.as_ref().map(|service| service.store.clone());
        let tasks = tasks.map_or_else(TaskStore::in_memory, TaskStore::Database);
        Ok(ProcessState {
            task_queue: Arc::new(TaskQueue::new(runtime.clone(), tasks)),
            files: Arc::new(FileStore::new(runtime.snapshot().images.files.size)),
            runtime,
            metrics,
            access_log,
            journal,
            store,
            limits,
            telemetry,
            stop: Arc::new(Notify::new()),
            stopped: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Makes a gateway with a connection pool of its own: connections belong to the runtime that made them.
    pub(super) fn gateway(&self, conf: &ServerConf) -> Gateway {
        let limits = self.limits.as_ref();
        Gateway {
            runtime: self.runtime.clone(),
            metrics: self.metrics.clone(),
            keyring: self.keyring(),
            failed_attempts: FailedAttempts::default(),
            shared_limits: limits.map(|service| service.limits.clone()),
            leases: self.leases(),
            conversation_store: self.conversation_store(),
            store: self.store.as_ref().map(|service| service.store.clone()),
            access_log: self.access_log.clone(),
            telemetry: self.telemetry(),
            journal: self.journal.clone(),
            upstream_pool: UpstreamPool::new(ConnectorOptions::from_server_conf(conf)),
            stop: self.stop.clone(),
            stopped: self.stopped.clone(),
            task_queue: self.task_queue.clone(),
            files: self.files.clone(),
        }
    }

    pub(super) fn keyring(&self) -> Option<Arc<Keyring>> {
        let service = self.store.as_ref()?;
        Some(service.keyring.clone())
    }

    pub(super) fn telemetry(&self) -> Option<Telemetry> {
        let service = self.telemetry.as_ref()?;
        Some(service.telemetry.clone())
    }

    pub(super) fn leases(&self) -> Option<Arc<Leases>> {
        let service = self.store.as_ref()?;
        Some(service.leases.clone())
    }

    pub(super) fn conversation_store(&self) -> Option<Arc<ConversationStore>> {
        self.store.as_ref()?.archive.clone()
    }
}

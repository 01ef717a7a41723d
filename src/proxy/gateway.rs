//! The gateway: what all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use super::access_log::AccessLog;
use super::conversation::conversation_store::ConversationStore;
use super::upstream::pool::UpstreamPool;
use crate::access::{FailedAttempts, Keyring, Leases, SharedLimits};
use crate::images::{FileStore, TaskQueue};
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::store::Store;
use crate::telemetry::Telemetry;

/// The proxy; its hooks stand in `mod.rs`.
pub struct Gateway {
    pub runtime: Arc<Runtime>,
    pub metrics: Arc<Metrics>,
    /// The keys of the store; `None`: there is no store.
    pub keyring: Option<Arc<Keyring>>,
    /// The wrong keys that clients have sent of late.
    pub failed_attempts: FailedAttempts,
    /// Limits that are shared with other gateways; `None`: this process keeps them alone.
    pub shared_limits: Option<Arc<SharedLimits>>,
    /// What this process may spend of caps that it shares; `None`: it shares none.
    pub leases: Option<Arc<Leases>>,
    /// Where stored responses outlive the process; `None`: nowhere.
    pub conversation_store: Option<Arc<ConversationStore>>,
    /// Where usage records are read again; `None`: nowhere.
    pub store: Option<Store>,
    pub access_log: Option<AccessLog>,
    /// Absent: no traces are made.
    pub telemetry: Option<Telemetry>,
    /// Where usage records are written; `None`: they are kept in memory only.
    pub journal: Option<Arc<Journal>>,
    pub upstream_pool: UpstreamPool,
    /// Notified when draining has taken long enough: what is still in flight ends with an error.
    pub stop: Arc<Notify>,
    /// Set just before that, and for good.
    pub stopped: Arc<AtomicBool>,
    pub task_queue: Arc<TaskQueue>,
    pub files: Arc<FileStore>,
}

impl Gateway {
    /// Whether requests in flight have been told to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

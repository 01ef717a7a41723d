//! The config prepared for serving, and the state that outlives a reload.

mod account;
mod bill;
mod body_memory;
mod condition;
mod conversations;
mod credential;
mod discovery;
mod fair_shares;
mod health;
mod id_origin;
mod inspection;
mod key;
mod key_errors;
mod key_limiter;
mod key_reservation;
mod large_body_places;
mod owner_share;
mod period;
mod places;
mod prices;
mod resolver;
mod route;
mod segment_cache;
mod snapshot;
mod state;
mod upstream;
mod upstream_load;
mod upstream_proxy;

pub use account::{
    Account, Cap, CapExceeded, LeaseAction, Reservation, ReservationResult, ReserveError, in_period,
};
pub use bill::Bill;
pub use body_memory::{BodyMemoryShare, NoBodyMemory};
pub use conversations::{
    ConversationError, Conversations, GivenId, KeySignatures, StoredConversationTurn,
};
pub use credential::{
    AwsCredentials, Credential, CredentialValue, FetchedCredential, SigningScope,
};
pub use discovery::{DiscoveredModels, UpstreamDiscovery};
pub use fair_shares::{FairShares, MemoryShare};
pub use health::{Health, HealthStatus};
pub use id_origin::IdOrigin;
pub use inspection::{
    CAPTURES_KEPT, Capture, CaptureOutcome, CaptureShare, CapturedAttempt, CapturedMessage,
    CapturedRequest, EventKind, EventSide, INSPECTED_REQUESTS, INSPECTION_TIME, InspectedKey,
    Inspection, InspectionScope, InspectionSwitch, Inspector, PANE_LIMIT, TimelineEvent,
};
pub use key::{CappedAccount, Key, KeyOwner, OwnerSettings, config_key_id, key_hash};
pub use key_errors::KeyErrors;
pub use key_limiter::{KeyLimiter, KeyPermit, LimitReached};
pub use key_reservation::KeyReservation;
pub use large_body_places::LargeBodyPlace;
pub use owner_share::{LeftPermit, OwnerShare};
pub use period::period_end;
pub use places::GlobalPermit;
pub use prices::{BillLine, PriceUnit, Prices};
pub use resolver::Resolver;
pub use route::{Attempt, Caller, attempts};
pub use snapshot::{AskedModel, Model, Snapshot};
pub use state::RuntimeState;
pub use upstream::Upstream;
pub use upstream_load::{QueueError, UpstreamLoad, UpstreamPermit};
pub use upstream_proxy::{TunnelError, UpstreamProxy};

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use crate::config::{self, Config, LimitsStore, ServerConfig, StoreConfig};

/// The current snapshot of the config, and everything that outlives it.
pub struct Runtime {
    current: ArcSwap<Snapshot>,
    /// The settings that the process started with; some stay in force until it ends.
    started: ServerConfig,
    /// The store that was opened at the start.
    store: Option<StoreConfig>,
    limits_store: Option<LimitsStore>,
    /// The journal whose folder was locked at the start.
    journal: config::JournalConfig,
    console: Option<config::ConsoleConfig>,
    telemetry: Option<config::TelemetryConfig>,
    /// The size of the cache of image files.
    started_file_cache_size: usize,
    pub resolver: Resolver,
    pub state: RuntimeState,
    pub conversations: Conversations,
    /// Wakes whoever fetches credentials, after a reload.
    pub reloaded: Notify,
    /// Why the last reload was refused; empty: it was not.
    refused: ArcSwap<Vec<config::Problem>>,
}

impl Runtime {
    pub fn new(config: Config) -> Runtime {
        let state = RuntimeState::default();
        Runtime {
            conversations: Conversations::new(config.server.conversations),
            started: config.server.clone(),
            store: config.store.clone(),
            limits_store: config.limits_store.clone(),
            journal: config.journal.clone(),
            console: config.console.clone(),
            telemetry: config.telemetry.clone(),
            started_file_cache_size: config.images.files.size,
            current: ArcSwap::from_pointee(Snapshot::build(config, &state)),
            state,
            resolver: Resolver::default(),
            reloaded: Notify::new(),
            refused: ArcSwap::default(),
        }
    }

    /// The current snapshot; a request keeps the one it began with, whatever is reloaded meanwhile.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Why the file was refused when it was read last; the config before it is in force.
    pub fn refused(&self) -> Arc<Vec<config::Problem>> {
        self.refused.load_full()
    }

    pub fn set_refused(&self, problems: Vec<config::Problem>) {
        self.refused.store(Arc::new(problems));
    }

    /// Replaces the config; returns the settings that take effect only after a restart.
    pub fn reload(&self, config: Config) -> Vec<&'static str> {
        let other_store = config.store != self.store;
        let other_limits_store = config.limits_store != self.limits_store;
        let other_journal = config.journal != self.journal;
        let other_console = config.console != self.console;
        let other_telemetry = config.telemetry != self.telemetry;
        let next = Arc::new(Snapshot::build(config, &self.state));
        self.current.store(next.clone());
        self.state.remove_unused();
        self.set_refused(Vec::new());
        self.reloaded.notify_one();
        let mut names = next.server.needs_restart_after(&self.started);
        names.extend(other_store.then_some("store"));
        names.extend(other_limits_store.then_some("limits_store"));
        names.extend(other_journal.then_some("journal"));
        names.extend(other_console.then_some("console"));
        names.extend(other_telemetry.then_some("telemetry"));
        if next.images.files.size != self.started_file_cache_size {
            names.push("images.files.size");
        }
        names
    }
}

//! The config made ready to run on, and the one place where a reload swaps it.

mod account;
mod allowance;
mod conversations;
mod health;
mod key;
mod live;
mod load;
mod period;
mod prices;
mod resolve;
mod route;
mod shelf;
mod snapshot;
mod upstream;

pub use account::{
    Account, Cap, CapExceeded, LeaseAction, Reservation, ReservationResult, ReserveError,
};
pub use allowance::{KeyLimiter, KeyPermit, LimitReached};
pub use conversations::{ConversationError, Conversations, KeySignatures, StoredConversationTurn};
pub use health::Health;
pub use key::{Key, key_hash};
pub use live::{Call, RuntimeState};
pub use load::{QueueError, UpstreamLoad, UpstreamPermit};
pub use period::period_end;
pub use prices::Prices;
pub use resolve::Resolver;
pub use route::{Attempt, attempts};
pub use snapshot::{Model, Snapshot};
pub use upstream::Upstream;

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::{self, Config, LimitsStore, ServerConfig, StoreConfig};

/// What every request takes its view of the world from.
pub struct Runtime {
    current: ArcSwap<Snapshot>,
    /// What the process began with; some of it stays in force until it ends.
    started: ServerConfig,
    /// Its store was opened when the process began.
    store: Option<StoreConfig>,
    limits_store: Option<LimitsStore>,
    /// Its folder was locked when the process began.
    journal: config::JournalConfig,
    /// For files that are kept.
    started_with_room: usize,
    pub resolver: Resolver,
    pub state: RuntimeState,
    pub conversations: Conversations,
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
            started_with_room: config.images.files.size,
            current: ArcSwap::from_pointee(Snapshot::build(config, &state)),
            state,
            resolver: Resolver::default(),
        }
    }

    /// One request keeps the snapshot it began with, whatever is reloaded meanwhile.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Puts a new config in force; returns what of it needs a restart instead.
    pub fn reload(&self, config: Config) -> Vec<&'static str> {
        let other_store = config.store != self.store;
        let other_limits_store = config.limits_store != self.limits_store;
        let other_journal = config.journal != self.journal;
        let next = Arc::new(Snapshot::build(config, &self.state));
        self.current.store(next.clone());
        self.state.tidy();
        let mut names = next.server.needs_restart_after(&self.started);
        names.extend(other_store.then_some("store"));
        names.extend(other_limits_store.then_some("limits_store"));
        names.extend(other_journal.then_some("journal"));
        if next.images.files.size != self.started_with_room {
            names.push("images.files.size");
        }
        names
    }
}

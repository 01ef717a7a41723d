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

pub use account::{Account, Cap, Refused, Reservation, Short, Told, Wish};
pub use allowance::{Permit, Reached, Used};
pub use conversations::{ConversationError, Conversations, Recalling, StoredConversationTurn};
pub use health::Health;
pub use key::{Key, fingerprint};
pub use live::{Call, Live};
pub use load::{Load, QueueError, UpstreamPermit};
pub use period::ends;
pub use prices::Prices;
pub use resolve::Resolver;
pub use route::{Attempt, attempts};
pub use snapshot::{Model, Snapshot};
pub use upstream::Upstream;

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::{self, Config, LimitsStore, Server, Store};

/// What every request takes its view of the world from.
pub struct Runtime {
    current: ArcSwap<Snapshot>,
    /// What the process began with; some of it stays in force until it ends.
    started: Server,
    /// Its store was opened when the process began.
    store: Option<Store>,
    limits_store: Option<LimitsStore>,
    /// Its folder was locked when the process began.
    journal: config::Journal,
    /// For files that are kept.
    started_with_room: usize,
    pub names: Resolver,
    pub live: Live,
    pub conversations: Conversations,
}

impl Runtime {
    pub fn new(config: Config) -> Runtime {
        let live = Live::default();
        Runtime {
            conversations: Conversations::new(config.server.conversations),
            started: config.server.clone(),
            store: config.store.clone(),
            limits_store: config.limits_store.clone(),
            journal: config.journal.clone(),
            started_with_room: config.images.files.size,
            current: ArcSwap::from_pointee(Snapshot::build(config, &live)),
            live,
            names: Resolver::default(),
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
        let next = Arc::new(Snapshot::build(config, &self.live));
        self.current.store(next.clone());
        self.live.tidy();
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

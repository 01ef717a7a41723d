//! The store beside the gateway: opened before the first request where it can be, and followed until the end.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::access::{Keyring, Leases};
use crate::config;
use crate::journal::{self, Journal, UsageSink};
use crate::metrics::Metrics;
use crate::model::UsageRecord;
use crate::proxy::ConversationStore;
use crate::runtime::Runtime;
use crate::store::{LeaseHolder, Store, StoreError};

/// How long the start waits for a database and what is to be written there first; after that the
/// gateway serves without it.
const PATIENCE: Duration = Duration::from_secs(4);

/// In the folder of the journal.
const IDENTITY: &str = "identity";

/// Between two tries to reach it.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Keeping {
    pub(super) store: Store,
    pub(super) keyring: Arc<Keyring>,
    pub(super) leases: Arc<Leases>,
    /// `None`: no replies are kept.
    pub(super) archive: Option<Arc<ConversationStore>>,
    /// The tasks of the store run here, and end with it.
    _tasks: tokio::runtime::Runtime,
}

impl Keeping {
    pub(super) fn start(
        settings: &config::StoreConfig,
        conversations: Option<config::ConversationsConfig>,
        runtime: &Arc<Runtime>,
        metrics: &Arc<Metrics>,
        (journal, folder): (&Arc<Journal>, &Path),
    ) -> Result<Keeping> {
        let tasks = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store")
            .enable_all()
            .build()
            .context("cannot start the runtime of the store")?;
        let within = tasks.enter();
        let cannot = || format!("cannot use the store {settings}");
        let store = Store::new(settings).with_context(cannot)?;
        drop(within);
        let leases = Arc::new(lender(&store, runtime, journal, folder));
        let keyring = Keyring::new(store.clone(), journal.clone(), metrics.clone());
        let following = Following {
            name: settings.to_string(),
            stored: Arc::new(Stored {
                store: store.clone(),
                leases: leases.clone(),
                opened: OnceCell::new(),
            }),
            journal: journal.clone(),
            keyring: Arc::new(keyring),
            runtime: runtime.clone(),
            metrics: metrics.clone(),
        };
        tasks.spawn(journal::run_background(
            journal.clone(),
            following.stored.clone(),
        ));
        let is_open = match tasks.block_on(following.begin()) {
            Ok(()) => true,
            Err(error @ StoreError::NewerSchema { .. }) => bail!("{}: {error}", cannot()),
            Err(error) if !store.is_remote() && !matches!(error, StoreError::Unavailable) => {
                bail!("{}: {error}", cannot())
            }
            Err(error) => {
                log::error!("{settings} cannot be reached: {error}");
                false
            }
        };
        if !is_open || !journal.has_flushed_previous() {
            log::warn!(
                "keys of the config are served; what they have spent before is not known yet"
            );
        }
        let archive = conversations.map(|conversations| {
            let (archive, writing) = ConversationStore::new(store.clone(), conversations.ttl);
            tasks.spawn(writing);
            Arc::new(archive)
        });
        let keyring = following.keyring.clone();
        tasks.spawn(following.run(is_open));
        let lending = leases.clone();
        tasks.spawn(async move { lending.run().await });
        Ok(Keeping {
            store,
            keyring,
            leases,
            archive,
            _tasks: tasks,
        })
    }
}

/// The store as the journal knows it, with its tables made when it is first reached.
struct Stored {
    store: Store,
    leases: Arc<Leases>,
    opened: OnceCell<()>,
}

impl Stored {
    async fn open(&self) -> Result<(), StoreError> {
        let opened = self.opened.get_or_try_init(|| self.store.migrate());
        opened.await.copied()
    }
}

#[async_trait]
impl UsageSink for Stored {
    async fn record(&self, receipts: &[UsageRecord<'_>]) -> Result<usize, String> {
        let recorded = async {
            self.open().await?;
            self.leases.record(receipts).await
        };
        recorded.await.map_err(|error| error.to_string())
    }
}

/// The part of shared caps that is this process's: its receipts wait in the journal that it alone has.
fn lender(store: &Store, runtime: &Arc<Runtime>, journal: &Arc<Journal>, folder: &Path) -> Leases {
    let holder = LeaseHolder {
        id: Uuid::now_v7().to_string(),
        journal: identity(folder),
        began: Timestamp::now(),
    };
    let journal = journal.clone();
    Leases::new(store.clone(), holder, runtime.clone(), move || {
        journal.has_flushed_previous()
    })
}

/// The name of a journal, by which it is known who comes after whom.
fn identity(folder: &Path) -> String {
    let file = folder.join(IDENTITY);
    let known = fs::read_to_string(&file).ok();
    let known = known.filter(|text| Uuid::parse_str(text).is_ok());
    known.unwrap_or_else(|| {
        let new = Uuid::now_v7().to_string();
        if let Err(error) = fs::write(&file, &new) {
            // What a killed process had set aside then comes back when its time is over.
            log::warn!("{} cannot be written: {error}", file.display());
        }
        new
    })
}

struct Following {
    name: String,
    stored: Arc<Stored>,
    journal: Arc<Journal>,
    keyring: Arc<Keyring>,
    runtime: Arc<Runtime>,
    metrics: Arc<Metrics>,
}

impl Following {
    /// Keys, and then what they have spent: for that, what an earlier process has left in the
    /// journal must be in the store. Receipts that take too long are no failure: they are on their way.
    async fn begin(&self) -> Result<(), StoreError> {
        let until = Instant::now() + PATIENCE;
        let is_behind = !self.journal.has_flushed_previous();
        self.look(until).await?;
        if !is_behind {
            return Ok(());
        }
        if timeout_at(until, self.journal.earlier_carried())
            .await
            .is_err()
        {
            let waiting = self.journal.standing().waiting;
            log::warn!(
                "{waiting} receipts from before are not in {} yet",
                self.name
            );
            return Ok(());
        }
        self.look(until).await
    }

    async fn run(self, is_open: bool) {
        let mut changes = self.stored.store.changes();
        let mut is_well = is_open;
        let mut is_behind = true;
        loop {
            self.metrics.store_answers(is_well);
            if is_well {
                tokio::select! {
                    () = changes.next() => {}
                    () = self.keyring.wanted() => {}
                    () = self.journal.earlier_carried(), if is_behind => {}
                }
            } else {
                sleep(PAUSE).await;
            }
            // Before the look: what comes in meanwhile is seen by the next.
            is_behind = !self.journal.has_flushed_previous();
            let looked = self.look(Instant::now() + PATIENCE).await;
            match &looked {
                Ok(()) if !is_well => {
                    log::info!("{} is in use again", self.name);
                    self.journal.hurry();
                }
                Ok(()) => {}
                Err(reason) if is_well => {
                    log::error!("{} fails, keys that are known go on: {reason}", self.name);
                }
                // Told once, until it is well again.
                Err(_) => {}
            }
            is_well = looked.is_ok();
        }
    }

    async fn look(&self, until: Instant) -> Result<(), StoreError> {
        let looking = async {
            self.stored.open().await?;
            self.keyring.follow(&self.runtime).await
        };
        let looked = timeout_at(until, looking).await;
        looked.unwrap_or(Err(StoreError::Unavailable))
    }
}

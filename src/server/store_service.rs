//! Opens the store before the first request, where it answers, and keeps keys, leases and usage in sync with it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use super::journal_service;
use crate::access::{Keyring, Leases};
use crate::config;
use crate::journal::{self, Journal, UsageSink};
use crate::metrics::Metrics;
use crate::model::UsageRecord;
use crate::proxy::ConversationStore;
use crate::runtime::Runtime;
use crate::store::{LeaseHolder, Store, StoreError};

/// Time that the start waits for the store and the records of an earlier process; after that the gateway serves
/// without it.
const START_TIMEOUT: Duration = Duration::from_secs(4);

/// The file with the id of the journal, in its folder.
const IDENTITY: &str = "identity";

/// How often the free space of the disk is looked at, for the metric; each write looks by itself.
const DISK_INTERVAL: Duration = Duration::from_secs(5);

/// Pause between two attempts to reach the store.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct StoreService {
    pub(super) store: Store,
    pub(super) keyring: Arc<Keyring>,
    pub(super) leases: Arc<Leases>,
    /// `None`: no responses are stored.
    pub(super) archive: Option<Arc<ConversationStore>>,
    /// The runtime of the store's tasks.
    _tasks: tokio::runtime::Runtime,
}

impl StoreService {
    pub(super) fn start(
        settings: &config::StoreConfig,
        (conversations, min_free): (Option<config::ConversationsConfig>, u64),
        runtime: &Arc<Runtime>,
        metrics: &Arc<Metrics>,
        (journal, settings_of_journal): (&Arc<Journal>, &config::JournalConfig),
    ) -> Result<StoreService> {
        let tasks = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store")
            .enable_all()
            .build()
            .context("cannot start the runtime of the store")?;
        let within = tasks.enter();
        let cannot = || format!("cannot use the store {settings}");
        let store = Store::new(settings).with_context(cannot)?;
        let store = store.with_min_free(settings, min_free);
        drop(within);
        let leases = Arc::new(leases(&store, runtime, journal));
        let keyring = Keyring::new(store.clone(), journal.clone(), metrics.clone());
        let store_sync = StoreSync {
            name: settings.to_string(),
            sink: Arc::new(StoreSink {
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
            store_sync.sink.clone(),
        ));
        let other = journal_service::other_folder(settings_of_journal, journal);
        let flushing =
            journal_service::flush_other(other, settings_of_journal.limit, store_sync.sink.clone());
        tasks.spawn(flushing);
        let is_open = match tasks.block_on(store_sync.begin()) {
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
            let (archive, writing) = ConversationStore::new(store.clone(), conversations);
            tasks.spawn(writing);
            Arc::new(archive)
        });
        if !store.is_remote() {
            tasks.spawn(watch_disk(store.clone(), metrics.clone()));
        }
        let keyring = store_sync.keyring.clone();
        tasks.spawn(store_sync.run(is_open));
        let lending = leases.clone();
        tasks.spawn(async move { lending.run().await });
        Ok(StoreService {
            store,
            keyring,
            leases,
            archive,
            _tasks: tasks,
        })
    }
}

/// Keeps the metric of the disk up to date, and logs when it changes.
async fn watch_disk(store: Store, metrics: Arc<Metrics>) {
    let mut was_low = false;
    loop {
        let is_low = !store.has_free_disk();
        metrics.set_disk_low(is_low);
        match (was_low, is_low) {
            (false, true) => log::warn!(
                "the disk of the store has less free than journal.min_free: usage records are written, responses and \
                 image tasks are not"
            ),
            (true, false) => log::info!("the disk of the store has enough free again"),
            _ => {}
        }
        was_low = is_low;
        sleep(DISK_INTERVAL).await;
    }
}

/// The store as the sink of the journal; it is migrated when it is first reached.
struct StoreSink {
    store: Store,
    leases: Arc<Leases>,
    opened: OnceCell<()>,
}

impl StoreSink {
    async fn open(&self) -> Result<(), StoreError> {
        let opened = self.opened.get_or_try_init(|| self.store.migrate());
        opened.await.copied()
    }
}

#[async_trait]
impl UsageSink for StoreSink {
    async fn record(&self, records: &[UsageRecord<'_>]) -> Result<usize, String> {
        let recorded = async {
            self.open().await?;
            self.leases.record(records).await
        };
        recorded.await.map_err(|error| error.to_string())
    }
}

/// The leases of this process, which holds them in the name of its journal.
fn leases(store: &Store, runtime: &Arc<Runtime>, journal: &Arc<Journal>) -> Leases {
    let holder = LeaseHolder {
        id: Uuid::now_v7().to_string(),
        journal: identity(journal.folder()),
        began: Timestamp::now(),
    };
    let journal = journal.clone();
    Leases::new(store.clone(), holder, runtime.clone(), move || {
        journal.has_flushed_previous()
    })
}

/// The id of the journal in a folder, by which a process takes over from its predecessor.
fn identity(folder: &Path) -> String {
    let file = folder.join(IDENTITY);
    let known = fs::read_to_string(&file).ok();
    let known = known.filter(|text| Uuid::parse_str(text).is_ok());
    known.unwrap_or_else(|| {
        let new = Uuid::now_v7().to_string();
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&file);
        if let Err(error) = written.and_then(|mut file| file.write_all(new.as_bytes())) {
            // Leases of a killed process then end only when they expire.
            log::warn!("{} cannot be written: {error}", file.display());
        }
        new
    })
}

struct StoreSync {
    name: String,
    sink: Arc<StoreSink>,
    journal: Arc<Journal>,
    keyring: Arc<Keyring>,
    runtime: Arc<Runtime>,
    metrics: Arc<Metrics>,
}

impl StoreSync {
    /// Keys, and then what they have spent: for that, what an earlier process has left in the
    /// journal must be in the store. Receipts that take too long are no failure: they are on their way.
    async fn begin(&self) -> Result<(), StoreError> {
        let until = Instant::now() + START_TIMEOUT;
        let is_behind = !self.journal.has_flushed_previous();
        self.sync(until).await?;
        if !is_behind {
            return Ok(());
        }
        if timeout_at(until, self.journal.previous_flushed())
            .await
            .is_err()
        {
            let waiting = self.journal.status().waiting;
            log::warn!(
                "{waiting} usage records of an earlier process are not in {} yet",
                self.name
            );
            return Ok(());
        }
        self.sync(until).await
    }

    async fn run(self, is_open: bool) {
        let mut changes = self.sink.store.changes();
        let mut is_well = is_open;
        let mut is_behind = true;
        loop {
            self.metrics.set_store_up(is_well);
            if is_well {
                tokio::select! {
                    () = changes.next() => {}
                    () = self.keyring.sync_requested() => {}
                    () = self.journal.previous_flushed(), if is_behind => {}
                }
            } else {
                sleep(RETRY_INTERVAL).await;
            }
            // Before the sync: what arrives meanwhile is seen by the next one.
            is_behind = !self.journal.has_flushed_previous();
            let synced = self.sync(Instant::now() + START_TIMEOUT).await;
            match &synced {
                Ok(()) if !is_well => {
                    log::info!("{} is in use again", self.name);
                    self.journal.flush_now();
                }
                Ok(()) => {}
                Err(reason) if is_well => {
                    log::error!("{} fails, keys that are known go on: {reason}", self.name);
                }
                // Logged once, until it is well again.
                Err(_) => {}
            }
            is_well = synced.is_ok();
        }
    }

    async fn sync(&self, until: Instant) -> Result<(), StoreError> {
        let syncing = async {
            self.sink.open().await?;
            self.keyring.sync(&self.runtime).await
        };
        let synced = timeout_at(until, syncing).await;
        synced.unwrap_or(Err(StoreError::Unavailable))
    }
}

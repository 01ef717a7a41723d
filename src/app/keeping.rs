//! The store beside the gateway: opened before the first request where it can be, and followed until the end.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use jiff::Timestamp;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::access::{Keyring, Leases};
use crate::config;
use crate::journal::{Books, Journal};
use crate::metrics::Metrics;
use crate::model::Receipt;
use crate::proxy::Archive;
use crate::runtime::Runtime;
use crate::store::{Holder, Store, StoreError};

/// How long the start waits for a database; after that the gateway serves without it.
const PATIENCE: Duration = Duration::from_secs(4);

/// In the folder of the journal.
const IDENTITY: &str = "identity";

/// Between two tries to reach it.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Keeping {
    pub(super) keyring: Arc<Keyring>,
    pub(super) leases: Arc<Leases>,
    /// `None`: no replies are kept.
    pub(super) archive: Option<Arc<Archive>>,
    /// The tasks of the store run here, and end with it.
    _tasks: tokio::runtime::Runtime,
}

impl Keeping {
    pub(super) fn start(
        settings: &config::Store,
        conversations: Option<config::Conversations>,
        runtime: &Arc<Runtime>,
        metrics: &Arc<Metrics>,
        receipts: (&Arc<Journal>, &Path),
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
        let keyring = Arc::new(Keyring::new(store.clone(), metrics.clone()));
        let leases = Arc::new(lender(&store, runtime, receipts));
        let opened = tasks.block_on(timeout(PATIENCE, open(&store, &keyring, runtime)));
        let is_open = match opened {
            Ok(Ok(())) => true,
            Ok(Err(error @ StoreError::Newer { .. })) => bail!("{}: {error}", cannot()),
            Ok(Err(error)) if !store.is_remote() => bail!("{}: {error}", cannot()),
            Ok(Err(error)) => {
                log::error!("{settings} cannot be reached: {error}");
                false
            }
            Err(_) => {
                log::error!("{settings} cannot be reached: it does not answer in time");
                false
            }
        };
        if !is_open {
            log::warn!(
                "keys of the config are served; what they have spent before is not known yet"
            );
        }
        drop(within);
        let archive = conversations.map(|conversations| {
            let (archive, writing) = Archive::new(store.clone(), conversations.ttl);
            tasks.spawn(writing);
            Arc::new(archive)
        });
        let following = Following {
            name: settings.to_string(),
            store: store.clone(),
            keyring: keyring.clone(),
            runtime: runtime.clone(),
            metrics: metrics.clone(),
            is_open,
        };
        tasks.spawn(following.run());
        let lending = leases.clone();
        tasks.spawn(async move { lending.run().await });
        Ok(Keeping {
            keyring,
            leases,
            archive,
            _tasks: tasks,
        })
    }
}

impl Keeping {
    pub(super) fn books(&self) -> Arc<dyn Books> {
        Arc::new(Stored(self.leases.clone()))
    }
}

/// The store as the journal knows it.
struct Stored(Arc<Leases>);

#[async_trait]
impl Books for Stored {
    async fn record(&self, receipts: &[Receipt]) -> Result<usize, String> {
        let recorded = self.0.record(receipts).await;
        recorded.map_err(|error| error.to_string())
    }
}

/// The part of shared caps that is this process's: its receipts wait in the journal that it alone has.
fn lender(
    store: &Store,
    runtime: &Arc<Runtime>,
    (journal, folder): (&Arc<Journal>, &Path),
) -> Leases {
    let left = journal.standing().waiting;
    let journal = journal.clone();
    let holder = Holder {
        id: Uuid::now_v7().to_string(),
        journal: identity(folder),
        began: Timestamp::now(),
    };
    Leases::new(store.clone(), holder, runtime.clone(), move || {
        let standing = journal.standing();
        standing.waiting == 0 || standing.carried + standing.damaged >= left
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

async fn open(store: &Store, keyring: &Keyring, runtime: &Runtime) -> Result<(), StoreError> {
    store.migrate().await?;
    keyring.follow(runtime).await
}

struct Following {
    name: String,
    store: Store,
    keyring: Arc<Keyring>,
    runtime: Arc<Runtime>,
    metrics: Arc<Metrics>,
    is_open: bool,
}

impl Following {
    async fn run(mut self) {
        let mut changes = self.store.changes();
        let mut is_well = self.is_open;
        loop {
            self.metrics.store_answers(is_well);
            if is_well {
                tokio::select! {
                    () = changes.next() => {}
                    () = self.keyring.wanted() => {}
                }
            } else {
                sleep(PAUSE).await;
            }
            let looked = self.look().await;
            match &looked {
                Ok(()) if !is_well => log::info!("{} is in use again", self.name),
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

    async fn look(&mut self) -> Result<(), String> {
        let looking = async {
            if !self.is_open {
                self.store.migrate().await?;
                self.is_open = true;
            }
            self.keyring.follow(&self.runtime).await
        };
        match timeout(PATIENCE, looking).await {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(_) => Err("it does not answer in time".to_owned()),
        }
    }
}

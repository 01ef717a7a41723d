//! The store beside the gateway: opened before the first request where it can be, and followed until the end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use tokio::time::{sleep, timeout};

use crate::access::Keyring;
use crate::config;
use crate::journal::Books;
use crate::metrics::Metrics;
use crate::model::Receipt;
use crate::proxy::Archive;
use crate::runtime::Runtime;
use crate::store::{Store, StoreError};

/// How long the start waits for a database; after that the gateway serves without it.
const PATIENCE: Duration = Duration::from_secs(4);

/// Between two tries to reach it.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Keeping {
    pub(super) store: Store,
    pub(super) keyring: Arc<Keyring>,
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
        Ok(Keeping {
            keyring,
            archive,
            store,
            _tasks: tasks,
        })
    }
}

impl Keeping {
    pub(super) fn books(&self) -> Arc<dyn Books> {
        Arc::new(Stored(self.store.clone()))
    }
}

/// The store as the journal knows it.
struct Stored(Store);

#[async_trait]
impl Books for Stored {
    async fn record(&self, receipts: &[Receipt]) -> Result<usize, String> {
        let recorded = self.0.record(receipts).await;
        recorded.map_err(|error| error.to_string())
    }
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

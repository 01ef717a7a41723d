//! Commands that work on the store of a config, beside a gateway that may be using it.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use comfy_table::{Table, presets};

use super::{ConfigFile, DEFAULT_FILE, tell_problems};
use crate::config::{self, Config};
use crate::store::{Store, StoreError};

pub(super) struct Stored {
    pub config: Config,
    store: Store,
    tasks: tokio::runtime::Runtime,
}

impl Stored {
    /// The inner error is a config whose problems have been told.
    pub fn open(file: ConfigFile) -> Result<Result<Stored, ExitCode>> {
        let Some(path) = file.path() else {
            bail!("there is no {DEFAULT_FILE} here: name a config with -c FILE");
        };
        let config = match config::load(&path, &config::process_env) {
            Ok(config) => config,
            Err(problems) => return Ok(Err(tell_problems(&problems))),
        };
        let Some(settings) = &config.store else {
            let path = path.display();
            bail!("{path} names no store; add one, such as `store: sqlite:omniglot.db`");
        };
        let tasks = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let store = tasks.block_on(Store::open(settings));
        let store = store.with_context(|| format!("cannot use the store {settings}"))?;
        Ok(Ok(Stored {
            config,
            store,
            tasks,
        }))
    }

    pub fn run<T>(&self, work: impl AsyncFnOnce(&Store) -> Result<T, StoreError>) -> Result<T> {
        Ok(self.tasks.block_on(work(&self.store))?)
    }
}

/// As the routes are shown.
pub fn plain_table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(columns.to_vec());
    table
}

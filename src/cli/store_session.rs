//! Opens the store of a config for a command; a gateway may use it at the same time.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use comfy_table::{Table, presets};

use super::config_file::{ConfigFile, DEFAULT_FILE, print_problems};
use crate::config::{self, StorePart};
use crate::console::{Console, ConsoleCall, Refusal};
use crate::store::{Store, StoreError};

/// The part of a config that is about the store, and the open store.
pub(super) struct StoreSession {
    pub config: StorePart,
    store: Store,
    tasks: tokio::runtime::Runtime,
}

impl StoreSession {
    /// The inner error is the exit code for a config whose problems are printed.
    pub fn open(file: ConfigFile) -> Result<Result<StoreSession, ExitCode>> {
        let Some(path) = file.path() else {
            bail!("there is no {DEFAULT_FILE} here: name a config with -c FILE");
        };
        let config = match config::load_store_part(&path, &config::process_env) {
            Ok(config) => config,
            Err(problems) => return Ok(Err(print_problems(&problems))),
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
        Ok(Ok(StoreSession {
            config,
            store,
            tasks,
        }))
    }

    /// Runs operations of the console, as the command line.
    pub fn run_on_console<T>(
        &self,
        work: impl AsyncFnOnce(&ConsoleCall) -> Result<T, Refusal>,
    ) -> Result<T> {
        let Some(settings) = &self.config.console else {
            bail!(
                "the config has no console; add one, such as `console: {{listen: 127.0.0.1:8082}}`"
            );
        };
        let console = Console::new(self.store.clone(), settings.clone(), None);
        let call = ConsoleCall::on_command_line(Arc::new(console));
        Ok(self.tasks.block_on(work(&call))?)
    }

    pub fn run<T>(&self, work: impl AsyncFnOnce(&Store) -> Result<T, StoreError>) -> Result<T> {
        Ok(self.tasks.block_on(work(&self.store))?)
    }
}

/// A table in the style of the route table.
pub fn plain_table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(columns.to_vec());
    table
}

//! `omniglot key`: keys of the store, also of one that a gateway is using at the moment.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use comfy_table::Table;
use jiff::Timestamp;
use serde::Serialize;

use super::config_file::ConfigFile;
use super::store_session::{StoreSession, plain_table};
use super::time_argument::{Direction, parse_time};
use crate::config::{Config, Reset, key_name, model_glob};
use crate::model::{Money, Spending};
use crate::store::{KeyChange, StoredKey};

/// The argument for no limit.
const UNLIMITED: &str = "unlimited";

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key; its secret is shown once, and only its hash is stored
    Create {
        /// The name of the key in lists, logs and metrics
        name: String,
        #[command(flatten)]
        options: KeyOptions,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// List the keys that are not revoked
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Change the settings of a key; those that are not given stay as they are
    Set {
        name: String,
        #[command(flatten)]
        options: KeyOptions,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Revoke a key; this cannot be undone
    Revoke {
        name: String,
        #[command(flatten)]
        config: ConfigFile,
    },
}

#[derive(Debug, Args)]
pub(super) struct KeyOptions {
    /// Spending cap, in the currency of the prices; or `unlimited`
    #[arg(long, value_name = "AMOUNT", value_parser = parse_cap)]
    cap: Option<Limit<Money>>,
    /// When the spending starts again at zero, in UTC: none, daily or monthly
    #[arg(long, value_parser = parse_reset)]
    reset: Option<Reset>,
    /// A glob of model ids that the key may use; may be given several times
    #[arg(long, value_name = "GLOB", value_parser = model_glob)]
    models: Vec<String>,
    /// Requests per minute; or `unlimited`
    #[arg(long, value_name = "N", value_parser = parse_count)]
    rpm: Option<Limit<u64>>,
    /// Tokens per minute; or `unlimited`
    #[arg(long, value_name = "N", value_parser = parse_count)]
    tpm: Option<Limit<u64>>,
    /// Concurrent requests; or `unlimited`
    #[arg(long, value_name = "N", value_parser = parse_count)]
    concurrency: Option<Limit<u64>>,
    /// When the key expires: in 30d, at a DATE (UTC), or `never`
    #[arg(long, value_name = "WHEN", value_parser = parse_expiry)]
    expires: Option<Limit<i64>>,
    /// The account that the key belongs to; it is created if it does not exist [default: default]
    #[arg(long, value_name = "NAME", value_parser = key_name)]
    account: Option<String>,
}

/// A limit, or `unlimited`. (clap gives `Option` another meaning.)
#[derive(Debug, Clone, Copy)]
struct Limit<T>(Option<T>);

fn parse_cap(text: &str) -> Result<Limit<Money>, String> {
    if text == UNLIMITED {
        return Ok(Limit(None));
    }
    let money = Money::parse(text).map(|money| Limit(Some(money)));
    money.ok_or_else(|| format!("an amount such as 25 or 0.5, or {UNLIMITED}"))
}

fn parse_count(text: &str) -> Result<Limit<u64>, String> {
    if text == UNLIMITED {
        return Ok(Limit(None));
    }
    let count = text.parse().ok().filter(|count| *count > 0);
    let count = count.map(|count| Limit(Some(count)));
    count.ok_or_else(|| format!("a whole number from 1 on, or {UNLIMITED}"))
}

fn parse_expiry(text: &str) -> Result<Limit<i64>, String> {
    if text == "never" {
        return Ok(Limit(None));
    }
    let now = Timestamp::now();
    let expires = parse_time(text, Direction::Future, now)?;
    if expires <= now {
        return Err("that is over already".to_owned());
    }
    Ok(Limit(Some(expires.as_millisecond())))
}

fn parse_reset(text: &str) -> Result<Reset, String> {
    Reset::from_word(text).ok_or_else(|| "none, daily or monthly".to_owned())
}

impl KeyOptions {
    fn change(self) -> KeyChange {
        // Every model, rather than those that match a star: that is what it means.
        let models = match &self.models[..] {
            [] => None,
            [all] if all == "*" => Some(None),
            _ => Some(Some(self.models)),
        };
        KeyChange {
            account: self.account,
            spending_cap: self.cap.map(|cap| cap.0),
            reset: self.reset,
            models,
            requests_per_minute: self.rpm.map(|limit| limit.0),
            tokens_per_minute: self.tpm.map(|limit| limit.0),
            concurrency: self.concurrency.map(|limit| limit.0),
            expires: self.expires.map(|expires| expires.0),
        }
    }
}

pub(super) fn run(command: KeyCommand) -> Result<ExitCode> {
    let (KeyCommand::Create { config, .. }
    | KeyCommand::List { config, .. }
    | KeyCommand::Set { config, .. }
    | KeyCommand::Revoke { config, .. }) = &command;
    let session = match StoreSession::open(config.clone())? {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    match command {
        KeyCommand::Create { name, options, .. } => create(&session, &name, options)?,
        KeyCommand::List { json, .. } => list(&session, json)?,
        KeyCommand::Set { name, options, .. } => {
            let change = options.change();
            if change == KeyChange::default() {
                bail!("nothing to change: name at least one option, see --help");
            }
            let key = session.run(async |store| store.change_key(&name, &change).await)?;
            print(&keys_table(&session, &[key])?);
        }
        KeyCommand::Revoke { name, .. } => {
            session.run(async |store| store.revoke_key(&name).await)?;
            print(&format!(
                "{name} is revoked: every gateway refuses it within 5 seconds"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn create(session: &StoreSession, name: &str, options: KeyOptions) -> Result<()> {
    let name = key_name(name).map_err(|expected| anyhow::anyhow!("a name must be {expected}"))?;
    if is_in_config(&session.config, &name) {
        bail!("the config has a key named {name:?}, which would win; choose another name");
    }
    let change = options.change();
    let (key, secret) = session.run(async |store| store.create_key(&name, &change).await)?;
    print(&keys_table(session, &[key])?);
    print(&format!(
        "\n{secret}\n\nThis is its secret. It is not kept, and not shown again."
    ));
    Ok(())
}

fn is_in_config(config: &Config, name: &str) -> bool {
    config.keys.iter().any(|key| key.name == name)
}

fn list(session: &StoreSession, json: bool) -> Result<()> {
    let keys = session.run(async |store| store.keys().await)?;
    if !json {
        print(&keys_table(session, &keys)?);
        return Ok(());
    }
    let spent = spending(session)?;
    let lines: Vec<KeyRow> = keys
        .iter()
        .map(|key| KeyRow::of(key, &session.config, spent.get(&key.settings.name).copied()))
        .collect();
    print(&serde_json::to_string_pretty(&lines).context("the list cannot be written")?);
    Ok(())
}

fn spending(session: &StoreSession) -> Result<std::collections::HashMap<String, Spending>> {
    let now = Timestamp::now();
    // The end of time as the start: nothing is subtracted.
    session.run(async |store| store.spending(None, Timestamp::MAX, now).await)
}

/// A key in the JSON list.
#[derive(Serialize)]
struct KeyRow<'a> {
    name: &'a str,
    prefix: &'a str,
    account: &'a str,
    spending_cap: Option<String>,
    reset: &'static str,
    /// In the period that the cap is for.
    spent: String,
    models: Option<&'a [String]>,
    requests_per_minute: Option<u64>,
    tokens_per_minute: Option<u64>,
    concurrency: Option<u64>,
    created: String,
    expires: Option<String>,
    /// A key of the config has the same name, and wins.
    shadowed: bool,
}

impl<'a> KeyRow<'a> {
    fn of(key: &'a StoredKey, config: &Config, spent: Option<Spending>) -> KeyRow<'a> {
        let settings = &key.settings;
        let spent = spent.unwrap_or_default();
        let spent = match settings.reset {
            Reset::Never => spent.total,
            Reset::Monthly => spent.month,
            Reset::Daily => spent.day,
        };
        KeyRow {
            name: &settings.name,
            prefix: &key.prefix,
            account: &key.account,
            spending_cap: settings
                .spending_cap
                .as_ref()
                .map(|cap| cap.money.to_string()),
            reset: settings.reset.word(),
            spent: spent.to_string(),
            models: settings.models.as_deref(),
            requests_per_minute: settings.limits.requests_per_minute,
            tokens_per_minute: settings.limits.tokens_per_minute,
            concurrency: settings.limits.concurrency,
            created: time(key.created),
            expires: key.expires.map(time),
            shadowed: is_in_config(config, &settings.name),
        }
    }
}

fn keys_table(session: &StoreSession, keys: &[StoredKey]) -> Result<String> {
    let spent = spending(session)?;
    let mut table: Table = plain_table(&[
        "name", "key", "account", "spent", "cap", "reset", "models", "rpm", "tpm", "at once",
        "expires",
    ]);
    let or_none = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    for key in keys {
        let line = KeyRow::of(key, &session.config, spent.get(&key.settings.name).copied());
        let note = if line.shadowed { " (config wins)" } else { "" };
        table.add_row([
            format!("{}{note}", line.name),
            format!("{}…", line.prefix),
            line.account.to_owned(),
            line.spent.clone(),
            line.spending_cap
                .clone()
                .unwrap_or_else(|| UNLIMITED.to_owned()),
            line.reset.to_owned(),
            line.models
                .map_or("all".to_owned(), |globs| globs.join(", ")),
            or_none(line.requests_per_minute),
            or_none(line.tokens_per_minute),
            or_none(line.concurrency),
            line.expires.clone().unwrap_or_else(|| "never".to_owned()),
        ]);
    }
    Ok(table.trim_fmt())
}

fn time(milliseconds: i64) -> String {
    let time = Timestamp::from_millisecond(milliseconds);
    let time = time.and_then(|time| time.round(jiff::Unit::Second));
    time.map_or_else(|_| milliseconds.to_string(), |time| time.to_string())
}

/// Prints to stdout; a closed pipe, as with `head`, is no failure.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

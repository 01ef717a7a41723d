//! `omniglot key`: keys of the store, also of one that a gateway is using at the moment.

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use comfy_table::Table;
use jiff::Timestamp;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::config_file::ConfigFile;
use super::output::print;
use super::store_session::{StoreSession, plain_table};
use super::time_argument::{Direction, parse_time};
use crate::config::{KeyConfig, Reset, StorePart, key_name, model_glob};
use crate::model::{Money, Spending};
use crate::runtime::{config_key_id, in_period};
use crate::store::{KeyChange, StoredKey};

/// The argument for no limit.
const UNLIMITED: &str = "unlimited";

const RESET_WITHOUT_CAP: &str = "--reset goes with a cap: a key without one has no spending that starts again; add --cap AMOUNT";

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key; its secret is shown once, and only its hash is stored
    Create {
        /// The name of the key in lists, logs and metrics
        name: String,
        #[command(flatten)]
        options: KeyOptions,
        /// Print a JSON object, with the secret
        #[arg(long)]
        json: bool,
    },
    /// List the keys of the store that are not revoked, and those of the config
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Change the settings of a key; those that are not given stay as they are
    Set {
        name: String,
        #[command(flatten)]
        options: KeyOptions,
    },
    /// Revoke a key; this cannot be undone
    Revoke { name: String },
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
pub(super) struct Limit<T>(pub(super) Option<T>);

pub(super) fn parse_cap(text: &str) -> Result<Limit<Money>, String> {
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

pub(super) fn parse_reset(text: &str) -> Result<Reset, String> {
    Reset::from_word(text).ok_or_else(|| "none, daily or monthly".to_owned())
}

impl KeyOptions {
    /// A key without a cap has no spending that could start again.
    fn change(self) -> Result<KeyChange> {
        // Every model, rather than those that match a star: that is what it means.
        let models = match &self.models[..] {
            [] => None,
            [all] if all == "*" => Some(None),
            _ => Some(Some(self.models)),
        };
        let spending_cap = self.cap.map(|cap| cap.0);
        let reset = match (spending_cap, self.reset) {
            (Some(None), None) => Some(Reset::Never),
            (Some(None), Some(Reset::Daily | Reset::Monthly)) => bail!(RESET_WITHOUT_CAP),
            (_, reset) => reset,
        };
        Ok(KeyChange {
            account: self.account,
            spending_cap,
            reset,
            models,
            requests_per_minute: self.rpm.map(|limit| limit.0),
            tokens_per_minute: self.tpm.map(|limit| limit.0),
            concurrency: self.concurrency.map(|limit| limit.0),
            expires: self.expires.map(|expires| expires.0),
        })
    }
}

pub(super) fn run(command: KeyCommand, file: ConfigFile) -> Result<ExitCode> {
    let session = match StoreSession::open(file)? {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    match command {
        KeyCommand::Create {
            name,
            options,
            json,
        } => create(&session, &name, options, json)?,
        KeyCommand::List { json } => list(&session, json)?,
        KeyCommand::Set { name, options } => set(&session, &name, options)?,
        KeyCommand::Revoke { name } => {
            session.run(async |store| store.revoke_key(&name).await)?;
            print(&format!(
                "{name} is revoked: every gateway refuses it within 5 seconds"
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn create(session: &StoreSession, name: &str, options: KeyOptions, json: bool) -> Result<()> {
    let name = key_name(name).map_err(|expected| anyhow::anyhow!("a name must be {expected}"))?;
    if is_in_config(&session.config, &name) {
        bail!("the config has a key named {name:?}, which would win; choose another name");
    }
    let change = options.change()?;
    if is_reset(&change) && change.spending_cap.is_none() {
        bail!(RESET_WITHOUT_CAP);
    }
    let (key, secret) = session.run(async |store| store.create_key(&name, &change).await)?;
    let row = KeyRow {
        secret: Some(&secret),
        ..KeyRow::stored(&key, session, &HashMap::new())
    };
    let printed = match json {
        true => print_json(&row),
        false => print(&format!(
            "{}\n\n{secret}\n\nThis is its secret. It is not kept, and not shown again.",
            keys_table(&[row])
        )),
    };
    printed.with_context(|| {
        format!("the secret of {name} is lost; revoke the key with `omniglot key revoke {name}`")
    })
}

fn set(session: &StoreSession, name: &str, options: KeyOptions) -> Result<()> {
    let change = options.change()?;
    if change == KeyChange::default() {
        bail!("nothing to change: name at least one option, see --help");
    }
    if is_reset(&change) && change.spending_cap.is_none() {
        let keys = session.run(async |store| store.keys().await)?;
        let mut keys = keys.iter().map(|key| &key.settings);
        if keys.any(|key| key.name == name && key.spending_cap.is_none()) {
            bail!(RESET_WITHOUT_CAP);
        }
    }
    let key = session.run(async |store| store.change_key(name, &change).await)?;
    let spent = spending(session)?;
    print(&keys_table(&[KeyRow::stored(&key, session, &spent)]))
}

fn is_reset(change: &KeyChange) -> bool {
    change.reset.is_some_and(|reset| reset != Reset::Never)
}

fn is_in_config(config: &StorePart, name: &str) -> bool {
    config.keys.iter().any(|key| key.name == name)
}

fn list(session: &StoreSession, json: bool) -> Result<()> {
    let keys = session.run(async |store| store.keys().await)?;
    let spent = spending(session)?;
    let stored = keys.iter().map(|key| KeyRow::stored(key, session, &spent));
    let configured = session.config.keys.iter();
    let configured = configured.map(|key| {
        let spent = spent.get(&config_key_id(&key.sha256));
        KeyRow::new(key, "config", spent)
    });
    let rows: Vec<KeyRow> = stored.chain(configured).collect();
    match json {
        true => print_json(&rows),
        false => print(&keys_table(&rows)),
    }
}

fn spending(session: &StoreSession) -> Result<HashMap<String, Spending>> {
    let now = Timestamp::now();
    // The end of time as the start: nothing is subtracted.
    session.run(async |store| store.spending(None, Timestamp::MAX, now).await)
}

/// A key in the lists.
#[derive(Serialize)]
struct KeyRow<'a> {
    name: &'a str,
    /// `store` or `config`.
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
    /// These two of keys of the store.
    prefix: Option<&'a str>,
    account: Option<&'a str>,
    #[serde(serialize_with = "serialize_amount")]
    spending_cap: Option<Money>,
    reset: &'static str,
    /// In the period that the cap is for.
    #[serde(serialize_with = "serialize_amount")]
    spent: Option<Money>,
    models: Option<&'a [String]>,
    requests_per_minute: Option<u64>,
    tokens_per_minute: Option<u64>,
    concurrency: Option<u64>,
    created: Option<String>,
    expires: Option<String>,
    /// A key of the config has the same name, and wins.
    shadowed: bool,
}

/// Writes an amount as everywhere: a JSON number with all its digits, which no float has.
fn serialize_amount<S: Serializer>(amount: &Option<Money>, out: S) -> Result<S::Ok, S::Error> {
    let number = amount.map(|amount| RawValue::from_string(amount.to_string()));
    let number = number.transpose().map_err(S::Error::custom)?;
    number.serialize(out)
}

impl<'a> KeyRow<'a> {
    fn new(key: &'a KeyConfig, source: &'static str, spent: Option<&Spending>) -> KeyRow<'a> {
        let spent = spent.copied().unwrap_or_default();
        let spent = in_period(&spent, key.reset);
        KeyRow {
            name: &key.name,
            source,
            secret: None,
            prefix: None,
            account: None,
            spending_cap: key.spending_cap.as_ref().map(|cap| cap.money),
            reset: key.reset.word(),
            spent: Some(spent),
            models: key.models.as_deref(),
            requests_per_minute: key.limits.requests_per_minute,
            tokens_per_minute: key.limits.tokens_per_minute,
            concurrency: key.limits.concurrency,
            created: None,
            expires: None,
            shadowed: false,
        }
    }

    fn stored(
        key: &'a StoredKey,
        session: &StoreSession,
        spent: &HashMap<String, Spending>,
    ) -> KeyRow<'a> {
        KeyRow {
            prefix: Some(&key.prefix),
            account: Some(&key.account),
            created: Some(time(key.created)),
            expires: key.expires.map(time),
            shadowed: is_in_config(&session.config, &key.settings.name),
            ..KeyRow::new(&key.settings, "store", spent.get(&key.id))
        }
    }
}

fn keys_table(keys: &[KeyRow]) -> String {
    let mut table: Table = plain_table(&[
        "name", "key", "account", "spent", "cap", "reset", "models", "rpm", "tpm", "at once",
        "expires",
    ]);
    let or_none = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    for key in keys {
        let note = if key.shadowed { " (config wins)" } else { "" };
        let amount = |amount: Option<Money>| amount.map(|amount| amount.to_string());
        table.add_row([
            format!("{}{note}", key.name),
            key.prefix
                .map_or_else(|| "(config)".to_owned(), |prefix| format!("{prefix}…")),
            key.account.unwrap_or("-").to_owned(),
            amount(key.spent).unwrap_or_default(),
            amount(key.spending_cap).unwrap_or_else(|| UNLIMITED.to_owned()),
            key.reset.to_owned(),
            key.models
                .map_or("all".to_owned(), |globs| globs.join(", ")),
            or_none(key.requests_per_minute),
            or_none(key.tokens_per_minute),
            or_none(key.concurrency),
            key.expires.clone().unwrap_or_else(|| "never".to_owned()),
        ]);
    }
    table.trim_fmt()
}

fn print_json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("the keys cannot be written as JSON")?;
    print(&text)
}

fn time(milliseconds: i64) -> String {
    let time = Timestamp::from_millisecond(milliseconds);
    let time = time.and_then(|time| time.round(jiff::Unit::Second));
    time.map_or_else(|_| milliseconds.to_string(), |time| time.to_string())
}

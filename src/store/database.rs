//! What outlives the process, in SQLite or PostgreSQL: keys, usage, spending, kept replies, tasks.

mod accounts;
mod asking;
mod changes;
mod keys;
mod leases;
mod migrate;
mod recording;
mod responses;
mod rows;
mod spending;
mod tasks;
mod usage;

pub use accounts::DEFAULT as DEFAULT_ACCOUNT;
pub use changes::Changes;
pub use keys::{KeyChange, StoredKey, may_be_stored_key};
pub use leases::{KeyLeaseRequest, LEASED_FOR, LeaseHolder};
pub use responses::StoredResponse;
pub use tasks::{StoredTask, TaskStatus, TaskUpdate};
pub use usage::{UsageGrouping, UsageSum};

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::any::AnyPoolOptions;
use sqlx::{Any, AnyPool, Executor as _, Transaction};

use crate::config;

/// Few: nothing here stands in the way of a request that goes on as it did before.
const CONNECTIONS: u32 = 8;

/// For a connection to be there.
const PATIENCE: Duration = Duration::from_secs(3);

/// In PostgreSQL, who writes more than a statement holds this, whichever process it is.
const WRITING: i64 = 0x6f6d_6e69_676c_6f74;

/// One pool of sqlx's `Any` driver, not one of each database: what is kept is text, integers and
/// bytes, which it knows, so that every statement is written once and tested on both.
#[derive(Clone)]
pub struct Store {
    pool: AnyPool,
    kind: Kind,
    /// `None` for SQLite, which has no way to be told of changes.
    address: Option<SecretString>,
    /// In milliseconds since 1970.
    left_alone_until: Arc<AtomicI64>,
    /// Who leases here; `None`: nobody does.
    holder: Option<Arc<LeaseHolder>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sqlite,
    Postgres,
}

#[derive(Debug)]
pub enum StoreError {
    /// A newer program has been here.
    NewerSchema {
        found: i64,
        known: i64,
    },
    /// Another key that is not revoked has the name.
    NameTaken(String),
    NoSuchKey(String),
    ResetWithoutCap,
    /// It does not answer in time, or has just not done so.
    Unavailable,
    /// What is kept there makes no sense.
    Corrupt(&'static str),
    File(io::Error),
    Database(sqlx::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NewerSchema { found, known } => write!(
                out,
                "the store has been used by a newer version of omniglot (its schema is {found}, this program knows \
                 {known}): run that version, or name another store"
            ),
            StoreError::NameTaken(name) => {
                write!(
                    out,
                    "there is a key named {name:?} already; revoke it first, or choose another name"
                )
            }
            StoreError::NoSuchKey(name) => {
                write!(
                    out,
                    "the store has no key named {name:?} that is not revoked"
                )
            }
            StoreError::ResetWithoutCap => out
                .write_str("a reset goes with a spending cap; set one, or leave the reset at none"),
            StoreError::Unavailable => out.write_str("it does not answer in time"),
            StoreError::Corrupt(what) => write!(out, "the store holds an unreadable {what}"),
            StoreError::File(error) => {
                write!(out, "the file of the store cannot be opened: {error}")
            }
            StoreError::Database(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// Of what is asked with, in PostgreSQL's classes: a text that cannot be stored, a row that is there already.
const FAULTS_OF_THE_QUESTION: [&str; 2] = ["22", "23"];

impl StoreError {
    /// Other questions would fail as well. One that cannot be answered as it stands says nothing of them.
    fn is_outage(&self) -> bool {
        match self {
            StoreError::Unavailable | StoreError::File(_) => true,
            StoreError::Database(sqlx::Error::Database(error)) => {
                !error.code().is_some_and(|code| {
                    let of = |class| code.starts_with(class);
                    code.len() == 5 && FAULTS_OF_THE_QUESTION.into_iter().any(of)
                })
            }
            StoreError::Database(_) => true,
            _ => false,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        StoreError::Database(error)
    }
}

impl Store {
    /// Without a connection yet: the first use makes one. Called where tokio runs.
    pub fn new(settings: &config::StoreConfig) -> Result<Store, StoreError> {
        sqlx::any::install_default_drivers();
        let pool = AnyPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE);
        match settings {
            config::StoreConfig::Sqlite(path) => {
                make_private(path).map_err(StoreError::File)?;
                let pool = pool.after_connect(|connection, _| {
                    // Readers and the writer do not wait for each other; what is committed is on disk.
                    let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000";
                    Box::pin(async move { connection.execute(settings).await.map(|_| ()) })
                });
                let path = path.to_string_lossy();
                let path = utf8_percent_encode(&path, NON_ALPHANUMERIC);
                Ok(Store {
                    pool: pool.connect_lazy(&format!("sqlite:{path}?mode=rwc"))?,
                    kind: Kind::Sqlite,
                    address: None,
                    left_alone_until: Arc::default(),
                    holder: None,
                })
            }
            config::StoreConfig::Postgres(address) => Ok(Store {
                pool: pool.connect_lazy(address.url.expose_secret())?,
                kind: Kind::Postgres,
                address: Some(address.url.clone()),
                left_alone_until: Arc::default(),
                holder: None,
            }),
        }
    }

    /// Connects, and brings the tables up to what this program knows.
    pub async fn open(settings: &config::StoreConfig) -> Result<Store, StoreError> {
        let store = Store::new(settings)?;
        store.migrate().await?;
        Ok(store)
    }

    /// Whether it may come up by itself: a database on another machine does, a file does not.
    pub fn is_remote(&self) -> bool {
        self.kind == Kind::Postgres
    }

    /// What is written in one go. There is one writer at a time in either database, so that what is
    /// read here is still so when the sum is written back.
    async fn write(&self) -> Result<Transaction<'static, Any>, StoreError> {
        if self.kind == Kind::Sqlite {
            return Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?);
        }
        let mut writing = self.pool.begin().await?;
        sqlx::query("SELECT pg_advisory_xact_lock($1)")
            .bind(WRITING)
            .execute(&mut *writing)
            .await?;
        Ok(writing)
    }
}

/// Its hashes, names and sums are nobody else's business.
fn make_private(path: &Path) -> io::Result<()> {
    let options = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    options.map(|_| ())
}

fn milliseconds_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Counts beyond what a database holds stay at the largest.
fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn counted(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

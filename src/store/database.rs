//! The connection pool, and what every statement needs.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::any::AnyPoolOptions;
use sqlx::error::DatabaseError;
use sqlx::{Any, AnyConnection, AnyPool, Connection as _, Executor as _, Transaction};

use super::error::StoreError;
use super::free_disk::DiskReserve;
use super::lease_holder::LeaseHolder;
use super::query_state::QueryState;
use crate::config;

/// The mode of a file that only its owner may read and write.
const PRIVATE: u32 = 0o600;

/// Few connections are enough: hardly any request waits for the store.
const CONNECTIONS: u32 = 8;

/// Time limit for a connection of the pool.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The advisory lock of PostgreSQL that every write transaction holds, across processes.
const WRITE_LOCK: i64 = 0x6f6d_6e69_676c_6f74;

pub(super) type WriteTransaction = Transaction<'static, Any>;

/// A database behind a pool of sqlx's `Any` driver: columns are text, integers and bytes only, so that
/// every statement is written once and tested on both databases.
#[derive(Clone)]
pub struct Store {
    pub(super) pool: AnyPool,
    pub(super) kind: DatabaseKind,
    /// `None` for SQLite, which has no notifications.
    pub(super) address: Option<SecretString>,
    /// The address of the file, for SQLite.
    pub(super) file: Option<Arc<str>>,
    pub(super) queries: Arc<QueryState>,
    /// `None`: all of the disk may be written.
    pub(super) disk_reserve: Option<Arc<DiskReserve>>,
    /// The holder of leases; `None`: this store takes none.
    pub(super) holder: Option<Arc<LeaseHolder>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseKind {
    Sqlite,
    Postgres,
}

impl Store {
    /// Makes a store without a connection; the first use connects. Must be called inside of a tokio runtime.
    pub fn new(settings: &config::StoreConfig) -> Result<Store, StoreError> {
        Store::with_connections(settings, CONNECTIONS)
    }

    /// The same with a limit of its own for connections.
    pub fn with_connections(
        settings: &config::StoreConfig,
        connections: u32,
    ) -> Result<Store, StoreError> {
        sqlx::any::install_default_drivers();
        let pool = AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(CONNECT_TIMEOUT);
        match settings {
            config::StoreConfig::Sqlite(path) => {
                make_private(path).map_err(StoreError::File)?;
                let pool = pool.after_connect(|connection, _| {
                    // Readers and the writer do not wait for each other; what is committed is on disk. The log of
                    // writes does not stay as large as one large write made it.
                    let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000; \
                         PRAGMA journal_size_limit = 16777216";
                    Box::pin(async move { connection.execute(settings).await.map(|_| ()) })
                });
                let path = path.to_string_lossy();
                let path = utf8_percent_encode(&path, NON_ALPHANUMERIC);
                let file = format!("sqlite:{path}?mode=rwc");
                Ok(Store {
                    pool: pool.connect_lazy(&file)?,
                    kind: DatabaseKind::Sqlite,
                    address: None,
                    file: Some(file.into()),
                    queries: Arc::default(),
                    disk_reserve: None,
                    holder: None,
                })
            }
            config::StoreConfig::Postgres(address) => Ok(Store {
                pool: pool.connect_lazy(address.url.expose_secret())?,
                kind: DatabaseKind::Postgres,
                address: Some(address.url.clone()),
                file: None,
                queries: Arc::default(),
                disk_reserve: None,
                holder: None,
            }),
        }
    }

    /// Leaves this many bytes of the disk to usage records. The disk of a server is not known here.
    pub fn with_min_free(mut self, settings: &config::StoreConfig, min_free: u64) -> Store {
        if let config::StoreConfig::Sqlite(path) = settings {
            self.disk_reserve = Some(Arc::new(DiskReserve::beside(path, min_free)));
        }
        self
    }

    /// Whether anything but usage records may be written.
    pub fn has_free_disk(&self) -> bool {
        let reserve = self.disk_reserve.as_ref();
        reserve.is_none_or(|reserve| reserve.is_left())
    }

    pub(super) fn check_free_disk(&self) -> Result<(), StoreError> {
        match self.has_free_disk() {
            true => Ok(()),
            false => Err(StoreError::LowDisk),
        }
    }

    /// Connects, and migrates the tables.
    pub async fn open(settings: &config::StoreConfig) -> Result<Store, StoreError> {
        let store = Store::new(settings)?;
        store.migrate().await?;
        Ok(store)
    }

    /// Checks that the file can be read as a database. The pool would only try again until its time is over.
    pub(super) async fn check_file(&self) -> Result<(), StoreError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let read = async {
            let mut connection = AnyConnection::connect(file).await?;
            let tables = sqlx::query("SELECT count(*) FROM sqlite_master");
            tables.fetch_one(&mut connection).await?;
            connection.close().await
        };
        read.await.map_err(|error| match error {
            sqlx::Error::Database(error) if is_damage(&*error) => {
                StoreError::Damaged(error.to_string())
            }
            error => StoreError::Database(error),
        })
    }

    /// Tells whether the database is a server, which may come back by itself; a file does not.
    pub fn is_remote(&self) -> bool {
        self.kind == DatabaseKind::Postgres
    }

    /// Begins a write transaction. Either database has one writer at a time, so that sums that are read
    /// here are still valid when they are written back.
    pub(super) async fn begin_write(&self) -> Result<Transaction<'static, Any>, StoreError> {
        if self.kind == DatabaseKind::Sqlite {
            return Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?);
        }
        let mut transaction = self.pool.begin().await?;
        sqlx::query("SELECT pg_advisory_xact_lock($1)")
            .bind(WRITE_LOCK)
            .execute(&mut *transaction)
            .await?;
        Ok(transaction)
    }
}

/// Creates the file with mode 0600, or closes an existing one to other users.
fn make_private(path: &Path) -> io::Result<()> {
    let options = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(PRIVATE)
        .open(path)?;
    let mode = options.metadata()?.permissions().mode() & 0o777;
    if mode & !PRIVATE != 0 {
        options.set_permissions(Permissions::from_mode(PRIVATE))?;
        let path = path.display();
        log::warn!("store: other users could read {path}, its mode was {mode:o}; it is 600 now");
    }
    Ok(())
}

/// Whether SQLite says that the file is malformed, or no database at all.
fn is_damage(error: &dyn DatabaseError) -> bool {
    const CORRUPT: u32 = 11;
    const NOT_A_DATABASE: u32 = 26;
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    // The lower byte of an extended code is the code.
    code.is_some_and(|code| matches!(code & 0xff, CORRUPT | NOT_A_DATABASE))
}

pub(super) fn milliseconds_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Converts a count to a column; counts beyond i64 are capped.
pub(super) fn to_column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn from_column(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

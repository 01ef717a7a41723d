//! Migrates the tables of the store, in steps that are only ever added to.
//!
//! Not with sqlx's migrations: their lock works in PostgreSQL only, and two processes that start at the same time on
//! a new SQLite file would fail.

use sqlx::{AssertSqlSafe, Row as _};

use super::accounts;
use super::database::{DatabaseKind, Store};
use super::error::StoreError;

/// The migrations; each leads from the version of its index to the next.
const STEPS: [&str; 15] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
    include_str!("migrations/0010.sql"),
    include_str!("migrations/0011.sql"),
    include_str!("migrations/0012.sql"),
    include_str!("migrations/0013.sql"),
    include_str!("migrations/0014.sql"),
    include_str!("migrations/0015.sql"),
];

impl Store {
    /// Creates the tables, or migrates them to the current schema.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.check_file().await?;
        let mut transaction = self.begin_write().await?;
        sqlx::raw_sql("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
            .execute(&mut *transaction)
            .await?;
        let found = sqlx::query("SELECT version FROM schema_version")
            .fetch_optional(&mut *transaction)
            .await?;
        let known = STEPS.len() as i64;
        let version: i64 = match found {
            Some(row) => row.try_get(0)?,
            None => {
                let first = "INSERT INTO schema_version (version) VALUES (0)";
                sqlx::query(first).execute(&mut *transaction).await?;
                0
            }
        };
        if version > known {
            return Err(StoreError::NewerSchema {
                found: version,
                known,
            });
        }
        let done = usize::try_from(version).map_err(|_| StoreError::Corrupt("version"))?;
        for step in &STEPS[done..] {
            let step = match self.kind {
                DatabaseKind::Sqlite => step.replace("BYTEA", "BLOB"),
                DatabaseKind::Postgres => (*step).to_owned(),
            };
            // Embedded files; nothing in them comes from outside.
            sqlx::raw_sql(AssertSqlSafe(step))
                .execute(&mut *transaction)
                .await?;
        }
        if version < known {
            sqlx::query("UPDATE schema_version SET version = $1")
                .bind(known)
                .execute(&mut *transaction)
                .await?;
        }
        accounts::find_or_create(&mut transaction, accounts::DEFAULT).await?;
        Ok(transaction.commit().await?)
    }
}

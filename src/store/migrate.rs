//! The tables of the store, made and changed in steps that are only ever added to.
//!
//! By hand and not by sqlx: its lock is one of PostgreSQL alone, and two processes that start at
//! once on a new SQLite file would fail.

use sqlx::{AssertSqlSafe, Row as _};

use super::{Kind, Store, StoreError, accounts};

/// Each takes the store from the version of its place to the next.
const STEPS: [&str; 3] = [
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
];

impl Store {
    /// Makes the tables, or brings them up to what this program knows.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let mut writing = self.write().await?;
        sqlx::raw_sql("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
            .execute(&mut *writing)
            .await?;
        let found = sqlx::query("SELECT version FROM schema_version")
            .fetch_optional(&mut *writing)
            .await?;
        let known = STEPS.len() as i64;
        let version: i64 = match found {
            Some(row) => row.try_get(0)?,
            None => {
                let first = "INSERT INTO schema_version (version) VALUES (0)";
                sqlx::query(first).execute(&mut *writing).await?;
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
                Kind::Sqlite => step.replace("BYTEA", "BLOB"),
                Kind::Postgres => (*step).to_owned(),
            };
            // Our own files; nothing in them comes from outside.
            sqlx::raw_sql(AssertSqlSafe(step))
                .execute(&mut *writing)
                .await?;
        }
        if version < known {
            sqlx::query("UPDATE schema_version SET version = $1")
                .bind(known)
                .execute(&mut *writing)
                .await?;
        }
        accounts::named(&mut writing, accounts::DEFAULT).await?;
        Ok(writing.commit().await?)
    }
}

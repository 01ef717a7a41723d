//! The audit log: who changed what, written in the transaction of the change.

use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};
use uuid::Uuid;

use super::database::{Store, milliseconds_now};
use super::error::StoreError;

/// The actor of who can read the config and write the store.
pub const COMMAND_LINE: &str = "(command line)";

/// One line of the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// The handle of the person; empty: nobody was signed in.
    pub actor: String,
    /// `console`, `api` or `cli`.
    pub via: &'static str,
    /// Such as `key.create`.
    pub action: &'static str,
    /// The name of what was changed.
    pub target: String,
    /// What was changed in it, without secrets.
    pub change: String,
    /// The address of the client.
    pub remote: String,
}

impl AuditEntry {
    /// What the command line does to the store itself.
    pub(super) fn of_command_line(
        action: &'static str,
        target: &str,
        change: String,
    ) -> AuditEntry {
        AuditEntry {
            actor: COMMAND_LINE.to_owned(),
            via: "cli",
            action,
            target: target.to_owned(),
            change,
            remote: String::new(),
        }
    }
}

/// A line of the audit log, as it is read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    pub id: String,
    /// In milliseconds since 1970.
    pub at: i64,
    pub actor: String,
    pub via: String,
    pub action: String,
    pub target: String,
    pub change: String,
    pub remote: String,
}

/// Which lines are asked for; what is empty is not.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub actor: String,
    /// A whole action, or its beginning up to the dot.
    pub action: String,
    pub target: String,
    /// Only those before the line with this id.
    pub before: String,
}

impl Store {
    /// Writes a line of what changes nothing in the store.
    pub async fn append_audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// At most `limit` lines of the audit log, the newest first. Ids begin with the time.
    pub async fn audit_lines(
        &self,
        filter: &AuditFilter,
        limit: usize,
    ) -> Result<Vec<AuditLine>, StoreError> {
        let some = "SELECT id, at, actor, via, action, target, change, remote FROM audit \
             WHERE ($1 = '' OR id < $1) AND ($2 = '' OR actor = $2) \
             AND ($3 = '' OR action = $3 OR action LIKE $4) AND ($5 = '' OR target = $5) \
             ORDER BY id DESC LIMIT $6";
        // What could be a pattern is none.
        let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
        let of_kind = match is_word(&filter.action) {
            true => format!("{}.%", filter.action),
            false => String::new(),
        };
        let rows = sqlx::query(some)
            .bind(filter.before.clone())
            .bind(filter.actor.clone())
            .bind(filter.action.clone())
            .bind(of_kind)
            .bind(filter.target.clone())
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(AuditLine::from_row).collect()
    }
}

impl AuditLine {
    fn from_row(row: &AnyRow) -> Result<AuditLine, StoreError> {
        Ok(AuditLine {
            id: row.try_get(0)?,
            at: row.try_get(1)?,
            actor: row.try_get(2)?,
            via: row.try_get(3)?,
            action: row.try_get(4)?,
            target: row.try_get(5)?,
            change: row.try_get(6)?,
            remote: row.try_get(7)?,
        })
    }
}

pub(super) async fn append(
    transaction: &mut Transaction<'static, Any>,
    entry: &AuditEntry,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO audit (id, at, actor, via, action, target, change, remote) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    sqlx::query(insert)
        .bind(Uuid::now_v7().to_string())
        .bind(milliseconds_now())
        .bind(entry.actor.clone())
        .bind(entry.via)
        .bind(entry.action)
        .bind(entry.target.clone())
        .bind(entry.change.clone())
        .bind(entry.remote.clone())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

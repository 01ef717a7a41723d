//! The audit log: who changed what, written in the transaction of the change.

use sqlx::{Any, Transaction};
use uuid::Uuid;

use super::database::{Store, milliseconds_now};
use super::error::StoreError;

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

impl Store {
    /// Writes a line of what changes nothing in the store.
    pub async fn append_audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
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

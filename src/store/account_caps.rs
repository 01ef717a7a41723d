//! Changes of an account that its keys have to learn of.

use sqlx::{Any, Row as _, Transaction};

use super::audit::{self, AuditEntry};
use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::keys::next_revision;
use crate::config::Reset;
use crate::model::Money;

impl Store {
    /// Sets the cap of an account; `None`: unlimited.
    pub async fn set_account_cap(
        &self,
        id: &str,
        cap: Option<Money>,
        reset: Reset,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        sqlx::query("UPDATE accounts SET account_cap = $1, account_reset = $2 WHERE id = $3")
            .bind(cap.map(|cap| cap.to_string()))
            .bind(reset.word())
            .bind(id.to_owned())
            .execute(&mut *transaction)
            .await?;
        self.renew_keys(&mut transaction, id).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// Disables or enables a team, and with it all of its keys.
    pub async fn disable_team(
        &self,
        name: &str,
        is_disabled: bool,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        let disabled = is_disabled.then(milliseconds_now);
        self.put_disabled(&mut transaction, name, disabled).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// Disables or enables an account by its name.
    pub(super) async fn put_disabled(
        &self,
        transaction: &mut Transaction<'static, Any>,
        name: &str,
        disabled: Option<i64>,
    ) -> Result<(), StoreError> {
        let account = sqlx::query("UPDATE accounts SET disabled = $1 WHERE name = $2 RETURNING id")
            .bind(disabled)
            .bind(name.to_owned())
            .fetch_one(&mut **transaction)
            .await?;
        let account: String = account.try_get(0)?;
        self.renew_keys(transaction, &account).await
    }

    /// Counts as a change of every key of an account, so that gateways read all of it again.
    pub(super) async fn renew_keys(
        &self,
        transaction: &mut Transaction<'static, Any>,
        account: &str,
    ) -> Result<(), StoreError> {
        let keys = sqlx::query("SELECT id FROM keys WHERE account = $1 AND revoked IS NULL")
            .bind(account.to_owned())
            .fetch_all(&mut **transaction)
            .await?;
        for key in keys {
            let id: String = key.try_get(0)?;
            let revision = next_revision(transaction).await?;
            sqlx::query("UPDATE keys SET revision = $1 WHERE id = $2")
                .bind(revision)
                .bind(id)
                .execute(&mut **transaction)
                .await?;
        }
        self.notify_key_change(transaction).await
    }
}

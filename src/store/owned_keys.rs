//! Keys by their accounts: what the console lists, creates, changes, rotates and revokes.

use sqlx::{AssertSqlSafe, Row as _};

use super::accounts;
use super::audit::{self, AuditEntry};
use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::key_change::KeyChange;
use super::keys::{COLUMNS, StoredKey, by_id};

impl Store {
    /// The keys of an account that are not revoked, by name.
    pub async fn keys_of_account(&self, account: &str) -> Result<Vec<StoredKey>, StoreError> {
        let all =
            format!("{COLUMNS} WHERE accounts.name = $1 AND revoked IS NULL ORDER BY keys.name");
        let rows = sqlx::query(AssertSqlSafe(all))
            .bind(account.to_owned())
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredKey::from_row).collect()
    }

    /// A key by its id, also one that is revoked.
    pub async fn key_by_id(&self, id: &str) -> Result<Option<StoredKey>, StoreError> {
        let one = format!("{COLUMNS} WHERE keys.id = $1");
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(id.to_owned())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(StoredKey::from_row).transpose()
    }

    /// Creates a key of an account, which may have `max` keys; of a team, for each person who makes them.
    pub async fn create_owned_key(
        &self,
        name: &str,
        change: &KeyChange,
        max: Option<u64>,
        entry: &AuditEntry,
    ) -> Result<(StoredKey, String), StoreError> {
        let mut transaction = self.begin_write().await?;
        if let Some(max) = max {
            let count = "SELECT COUNT(*) FROM keys JOIN accounts ON accounts.id = keys.account \
                 WHERE accounts.name = $1 AND revoked IS NULL AND (accounts.kind <> $2 OR made_by = $3)";
            let count = sqlx::query(count)
                .bind(change.account.clone().unwrap_or_default())
                .bind(accounts::TEAM)
                .bind(entry.actor.clone())
                .fetch_one(&mut *transaction)
                .await?;
            let count: i64 = count.try_get(0)?;
            if u64::try_from(count).is_ok_and(|count| count >= max) {
                return Err(StoreError::TooManyKeys(max));
            }
        }
        let made_by = Some(entry.actor.as_str());
        let created = self.insert_key(&mut transaction, name, change, made_by);
        let created = created.await?;
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(created)
    }

    pub async fn change_owned_key(
        &self,
        id: &str,
        change: &KeyChange,
        entry: &AuditEntry,
    ) -> Result<StoredKey, StoreError> {
        let edit = |key: &mut StoredKey| key.apply(change);
        self.edit_key(id, edit, entry).await.map(|(key, ())| key)
    }

    /// Gives a key a new secret; the present one works until `until`, in milliseconds since 1970.
    pub async fn rotate_key(
        &self,
        id: &str,
        until: i64,
        entry: &AuditEntry,
    ) -> Result<(StoredKey, String), StoreError> {
        let edit = |key: &mut StoredKey| Ok(key.rotate(until));
        self.edit_key(id, edit, entry).await
    }

    pub async fn revoke_owned_key(&self, id: &str, entry: &AuditEntry) -> Result<(), StoreError> {
        let edit = |key: &mut StoredKey| {
            key.revoked = Some(milliseconds_now());
            Ok(())
        };
        self.edit_key(id, edit, entry).await.map(|_| ())
    }

    async fn edit_key<T>(
        &self,
        id: &str,
        edit: impl FnOnce(&mut StoredKey) -> Result<T, StoreError>,
        entry: &AuditEntry,
    ) -> Result<(StoredKey, T), StoreError> {
        let mut transaction = self.begin_write().await?;
        let key = by_id(&mut transaction, id).await?;
        let key = key.filter(|key| key.revoked.is_none());
        let mut key = key.ok_or_else(|| StoreError::NoSuchKey(id.to_owned()))?;
        let made = edit(&mut key)?;
        self.put(&mut transaction, &mut key).await?;
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok((key, made))
    }

    /// When a key was used last, as far as its usage is recorded, in milliseconds since 1970.
    pub async fn last_used(&self, id: &str) -> Result<Option<i64>, StoreError> {
        let last = sqlx::query("SELECT MAX(ended) FROM usage WHERE key_id = $1")
            .bind(id.to_owned())
            .fetch_one(&self.pool)
            .await?;
        Ok(last.try_get(0)?)
    }
}

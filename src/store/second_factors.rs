//! Second factors: secrets of codes, the last code that was used, and codes for who has lost the device.

use sqlx::{Any, Row as _, Transaction};

use super::audit::{self, AuditEntry};
use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::people::{Person, find, put};
use super::secrets::hex;

impl Store {
    /// Keeps the secret of a second factor until a code confirms it.
    pub async fn set_pending_totp(&self, person: &str, secret: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE people SET totp_pending = $1 WHERE id = $2 AND totp IS NULL")
            .bind(secret.to_owned())
            .bind(person.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// The secret that is not confirmed yet.
    pub async fn pending_totp(&self, person: &str) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("SELECT totp_pending FROM people WHERE id = $1")
            .bind(person.to_owned())
            .fetch_optional(&self.pool)
            .await?;
        match row {
            Some(row) => Ok(row.try_get(0)?),
            None => Ok(None),
        }
    }

    /// Sets the second factor of a person, or removes it; all sessions end. `step` is that of the code that confirmed it.
    pub async fn set_totp(
        &self,
        person: &str,
        totp: Option<(&str, i64)>,
        recovery: &[[u8; 32]],
        entry: &AuditEntry,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.begin_write().await?;
        let mut person = find(&mut transaction, person).await?;
        person.totp = totp.map(|(secret, _)| secret.to_owned());
        person.epoch += 1;
        put(&mut transaction, &person).await?;
        sqlx::query("UPDATE people SET totp_pending = NULL, totp_step = $1 WHERE id = $2")
            .bind(totp.map(|(_, step)| step))
            .bind(person.id.clone())
            .execute(&mut *transaction)
            .await?;
        put_recovery(&mut transaction, &person.id, recovery).await?;
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(person)
    }

    /// Notes that the code of a step was used. No code works after it that is not newer.
    pub async fn use_totp_step(&self, person: &str, step: i64) -> Result<bool, StoreError> {
        let once = "UPDATE people SET totp_step = $1 WHERE id = $2 AND (totp_step IS NULL OR totp_step < $1)";
        let used = sqlx::query(once)
            .bind(step)
            .bind(person.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(used.rows_affected() == 1)
    }

    /// Replaces the codes for who has lost the device.
    pub async fn replace_recovery(
        &self,
        person: &str,
        codes: &[[u8; 32]],
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        put_recovery(&mut transaction, person, codes).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// Uses up a code for who has lost the device; only one of several requests at once does.
    pub async fn use_recovery(&self, person: &str, sha256: &[u8; 32]) -> Result<bool, StoreError> {
        let once =
            "UPDATE recovery SET used = $1 WHERE person = $2 AND sha256 = $3 AND used IS NULL";
        let used = sqlx::query(once)
            .bind(milliseconds_now())
            .bind(person.to_owned())
            .bind(hex(sha256))
            .execute(&self.pool)
            .await?;
        Ok(used.rows_affected() == 1)
    }

    /// How many of those codes are left.
    pub async fn recovery_left(&self, person: &str) -> Result<i64, StoreError> {
        let left = "SELECT COUNT(*) FROM recovery WHERE person = $1 AND used IS NULL";
        let row = sqlx::query(left)
            .bind(person.to_owned())
            .fetch_one(&self.pool)
            .await?;
        Ok(row.try_get(0)?)
    }
}

async fn put_recovery(
    transaction: &mut Transaction<'static, Any>,
    person: &str,
    codes: &[[u8; 32]],
) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM recovery WHERE person = $1")
        .bind(person.to_owned())
        .execute(&mut **transaction)
        .await?;
    for code in codes {
        sqlx::query("INSERT INTO recovery (person, sha256) VALUES ($1, $2)")
            .bind(person.to_owned())
            .bind(hex(code))
            .execute(&mut **transaction)
            .await?;
    }
    Ok(())
}

//! Keys of the store: their hashes, never their secrets.

use sha2::{Digest as _, Sha256};
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use uuid::Uuid;

use super::audit::{self, AuditEntry};
use super::database::{DatabaseKind, Store, from_column, milliseconds_now, to_column};
use super::error::StoreError;
use super::key_change::KeyChange;
use super::secrets::{SHOWN, from_hex, hex, new_secret};
use super::spending::decode_money;
use super::{accounts, alerts};
use crate::config::{self, Amount, Limits, Reset};
use crate::model::Money;

/// The PostgreSQL channel that is notified of changes.
pub(super) const CHANNEL: &str = "omniglot_keys";

pub(super) const COLUMNS: &str = "SELECT keys.id, keys.name, accounts.name, sha256, prefix, keys.spending_cap, keys.reset, models, \
     requests_per_minute, tokens_per_minute, concurrency, keys.created, expires, revoked, revision, \
     previous_sha256, previous_until, made_by, accounts.disabled, \
     CASE accounts.kind WHEN 'system' THEN NULL ELSE accounts.id END, account_cap, account_reset \
     FROM keys JOIN accounts ON accounts.id = keys.account";

#[derive(Debug, Clone)]
pub struct StoredKey {
    pub id: String,
    pub settings: config::KeyConfig,
    /// By name.
    pub account: String,
    /// The start of its secret.
    pub prefix: String,
    /// These three in milliseconds since 1970.
    pub created: i64,
    pub expires: Option<i64>,
    pub revoked: Option<i64>,
    /// Higher than that of every earlier change to any key.
    pub revision: i64,
    /// The secret before the last rotation.
    pub previous: Option<PreviousSecret>,
    /// The handle of the person who made it; `None`: the command line.
    pub made_by: Option<String>,
    /// Its account is disabled, and so is the key.
    pub is_disabled: bool,
    /// Its account, if that is of a person or a team.
    pub owner: Option<StoredOwner>,
}

/// The account of a person or a team, as its keys know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOwner {
    pub id: String,
    pub spending_cap: Option<Money>,
    pub reset: Reset,
}

/// The hash of a secret that was replaced, and until when it works, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviousSecret {
    pub sha256: [u8; 32],
    pub until: i64,
}

impl Store {
    /// Creates a key on the command line and returns its secret, of which only the hash is stored.
    pub async fn create_key(
        &self,
        name: &str,
        change: &KeyChange,
    ) -> Result<(StoredKey, String), StoreError> {
        let mut transaction = self.begin_write().await?;
        let created = self.insert_key(&mut transaction, name, change, None);
        let created = created.await?;
        let entry = AuditEntry::of_command_line("key.create", name, change.describe());
        audit::append(&mut transaction, &entry).await?;
        transaction.commit().await?;
        Ok(created)
    }

    pub(super) async fn insert_key(
        &self,
        transaction: &mut Transaction<'static, Any>,
        name: &str,
        change: &KeyChange,
        made_by: Option<&str>,
    ) -> Result<(StoredKey, String), StoreError> {
        let secret = new_secret();
        let mut key = StoredKey {
            id: Uuid::now_v7().to_string(),
            settings: config::KeyConfig {
                name: name.to_owned(),
                sha256: Sha256::digest(secret.as_bytes()).into(),
                has_short_secret: false,
                spending_cap: None,
                reset: Reset::Never,
                models: None,
                limits: Limits::default(),
                line: None,
            },
            account: accounts::DEFAULT.to_owned(),
            prefix: secret[..SHOWN].to_owned(),
            created: milliseconds_now(),
            expires: None,
            revoked: None,
            revision: 0,
            previous: None,
            made_by: made_by.map(str::to_owned),
            is_disabled: false,
            owner: None,
        };
        key.apply(change)?;
        if by_name(transaction, name).await?.is_some() {
            return Err(StoreError::NameTaken(name.to_owned()));
        }
        self.put(transaction, &mut key).await?;
        Ok((key, secret))
    }

    pub async fn change_key(
        &self,
        name: &str,
        change: &KeyChange,
    ) -> Result<StoredKey, StoreError> {
        let mut transaction = self.begin_write().await?;
        let mut key = by_name(&mut transaction, name)
            .await?
            .ok_or_else(|| StoreError::NoSuchKey(name.to_owned()))?;
        key.apply(change)?;
        self.put(&mut transaction, &mut key).await?;
        let entry = AuditEntry::of_command_line("key.change", name, change.describe());
        audit::append(&mut transaction, &entry).await?;
        transaction.commit().await?;
        Ok(key)
    }

    pub async fn revoke_key(&self, name: &str) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        let mut key = by_name(&mut transaction, name)
            .await?
            .ok_or_else(|| StoreError::NoSuchKey(name.to_owned()))?;
        key.revoked = Some(milliseconds_now());
        self.put(&mut transaction, &mut key).await?;
        let entry = AuditEntry::of_command_line("key.revoke", name, String::new());
        audit::append(&mut transaction, &entry).await?;
        Ok(transaction.commit().await?)
    }

    /// All keys that are not revoked, by name.
    pub async fn keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        let all = format!("{COLUMNS} WHERE revoked IS NULL ORDER BY keys.name");
        let rows = sqlx::query(AssertSqlSafe(all))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredKey::from_row).collect()
    }

    /// All changes after a revision, revocations included, in order.
    pub async fn keys_since(&self, revision: i64) -> Result<Vec<StoredKey>, StoreError> {
        let newer = format!("{COLUMNS} WHERE revision > $1 ORDER BY revision");
        let rows = sqlx::query(AssertSqlSafe(newer))
            .bind(revision)
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredKey::from_row).collect()
    }

    /// A key by the hash of its secret, or of the one before it while that works; unless it is revoked or disabled.
    pub async fn key(&self, sha256: &[u8; 32]) -> Result<Option<StoredKey>, StoreError> {
        let one = format!(
            "{COLUMNS} WHERE (sha256 = $1 OR previous_sha256 = $1 AND previous_until > $2) \
             AND revoked IS NULL AND accounts.disabled IS NULL"
        );
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(hex(sha256))
            .bind(milliseconds_now())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(StoredKey::from_row).transpose()
    }

    /// Writes a key with a new revision, and notifies the other processes.
    pub(super) async fn put(
        &self,
        transaction: &mut Transaction<'static, Any>,
        key: &mut StoredKey,
    ) -> Result<(), StoreError> {
        let account = accounts::find_or_create(transaction, &key.account).await?;
        key.revision = next_revision(transaction).await?;
        let settings = &key.settings;
        let models = settings.models.as_ref();
        let models =
            models.map(|globs| serde_json::to_string(globs).expect("a list of text serialises"));
        let put = "INSERT INTO keys (id, name, account, sha256, prefix, spending_cap, reset, models, \
             requests_per_minute, tokens_per_minute, concurrency, created, expires, revoked, revision, \
             previous_sha256, previous_until, made_by) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) \
             ON CONFLICT (id) DO UPDATE SET account = excluded.account, sha256 = excluded.sha256, \
             prefix = excluded.prefix, previous_sha256 = excluded.previous_sha256, \
             previous_until = excluded.previous_until, spending_cap = excluded.spending_cap, \
             reset = excluded.reset, models = excluded.models, \
             requests_per_minute = excluded.requests_per_minute, \
             tokens_per_minute = excluded.tokens_per_minute, concurrency = excluded.concurrency, \
             expires = excluded.expires, revoked = excluded.revoked, revision = excluded.revision";
        sqlx::query(put)
            .bind(key.id.clone())
            .bind(settings.name.clone())
            .bind(account)
            .bind(hex(&settings.sha256))
            .bind(key.prefix.clone())
            .bind(
                settings
                    .spending_cap
                    .as_ref()
                    .map(|cap| cap.money.to_string()),
            )
            .bind(settings.reset.word())
            .bind(models)
            .bind(settings.limits.requests_per_minute.map(to_column))
            .bind(settings.limits.tokens_per_minute.map(to_column))
            .bind(settings.limits.concurrency.map(to_column))
            .bind(key.created)
            .bind(key.expires)
            .bind(key.revoked)
            .bind(key.revision)
            .bind(key.previous.map(|previous| hex(&previous.sha256)))
            .bind(key.previous.map(|previous| previous.until))
            .bind(key.made_by.clone())
            .execute(&mut **transaction)
            .await?;
        if key.revoked.is_some() {
            alerts::delete_of_key(transaction, &key.id).await?;
        }
        self.notify_key_change(transaction).await
    }

    /// Notifies the other processes of a change, once it is committed.
    pub(super) async fn notify_key_change(
        &self,
        transaction: &mut Transaction<'static, Any>,
    ) -> Result<(), StoreError> {
        if self.kind == DatabaseKind::Postgres {
            sqlx::query("SELECT pg_notify($1, '')")
                .bind(CHANNEL)
                .execute(&mut **transaction)
                .await?;
        }
        Ok(())
    }
}

/// The next number of a change to keys.
pub(super) async fn next_revision(
    transaction: &mut Transaction<'static, Any>,
) -> Result<i64, StoreError> {
    let next = "UPDATE revisions SET number = number + 1 WHERE what = 'keys' RETURNING number";
    let next = sqlx::query(next).fetch_one(&mut **transaction).await?;
    Ok(next.try_get(0)?)
}

async fn by_name(
    transaction: &mut Transaction<'static, Any>,
    name: &str,
) -> Result<Option<StoredKey>, StoreError> {
    let one = format!("{COLUMNS} WHERE keys.name = $1 AND revoked IS NULL");
    let row = sqlx::query(AssertSqlSafe(one))
        .bind(name.to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    row.as_ref().map(StoredKey::from_row).transpose()
}

/// A key by its id, also one that is revoked.
pub(super) async fn by_id(
    transaction: &mut Transaction<'static, Any>,
    id: &str,
) -> Result<Option<StoredKey>, StoreError> {
    let one = format!("{COLUMNS} WHERE keys.id = $1");
    let row = sqlx::query(AssertSqlSafe(one))
        .bind(id.to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    row.as_ref().map(StoredKey::from_row).transpose()
}

impl StoredKey {
    /// Gives the key another secret; the present one works until `until`.
    pub(super) fn rotate(&mut self, until: i64) -> String {
        let secret = new_secret();
        self.previous = Some(PreviousSecret {
            sha256: self.settings.sha256,
            until,
        });
        self.settings.sha256 = Sha256::digest(secret.as_bytes()).into();
        self.prefix = secret[..SHOWN].to_owned();
        secret
    }

    pub(super) fn apply(&mut self, change: &KeyChange) -> Result<(), StoreError> {
        let KeyChange {
            account,
            spending_cap,
            reset,
            models,
            requests_per_minute,
            tokens_per_minute,
            concurrency,
            expires,
        } = change.clone();
        let settings = &mut self.settings;
        if let Some(cap) = spending_cap {
            settings.spending_cap = cap.map(amount);
        }
        if let Some(reset) = reset {
            settings.reset = reset;
        }
        if settings.spending_cap.is_none() {
            if reset.is_some_and(|reset| reset != Reset::Never) {
                return Err(StoreError::ResetWithoutCap);
            }
            settings.reset = Reset::Never;
        }
        settings.models = models.unwrap_or(settings.models.take());
        let limits = &mut settings.limits;
        limits.requests_per_minute = requests_per_minute.unwrap_or(limits.requests_per_minute);
        limits.tokens_per_minute = tokens_per_minute.unwrap_or(limits.tokens_per_minute);
        limits.concurrency = concurrency.unwrap_or(limits.concurrency);
        self.expires = expires.unwrap_or(self.expires);
        if let Some(account) = account {
            self.account = account;
        }
        Ok(())
    }

    pub(super) fn from_row(row: &AnyRow) -> Result<StoredKey, StoreError> {
        let previous: (Option<String>, Option<i64>) = (row.try_get(15)?, row.try_get(16)?);
        let previous = previous.0.zip(previous.1).map(|(sha256, until)| {
            let sha256 = from_hex(&sha256).ok_or(StoreError::Corrupt("hash"))?;
            Ok::<_, StoreError>(PreviousSecret { sha256, until })
        });
        let disabled: Option<i64> = row.try_get(18)?;
        let sha256: String = row.try_get(3)?;
        let cap: Option<String> = row.try_get(5)?;
        let cap = cap.map(decode_money);
        let reset: String = row.try_get(6)?;
        let models: Option<String> = row.try_get(7)?;
        let models = models.map(|globs| serde_json::from_str(&globs));
        let count = |column: usize| -> Result<Option<u64>, sqlx::Error> {
            let count: Option<i64> = row.try_get(column)?;
            Ok(count.map(from_column))
        };
        Ok(StoredKey {
            id: row.try_get(0)?,
            settings: config::KeyConfig {
                name: row.try_get(1)?,
                sha256: from_hex(&sha256).ok_or(StoreError::Corrupt("hash"))?,
                has_short_secret: false,
                spending_cap: cap.transpose()?.map(amount),
                reset: Reset::from_word(&reset).ok_or(StoreError::Corrupt("reset"))?,
                models: models
                    .transpose()
                    .map_err(|_| StoreError::Corrupt("list of models"))?,
                limits: Limits {
                    requests_per_minute: count(8)?,
                    tokens_per_minute: count(9)?,
                    concurrency: count(10)?,
                },
                line: None,
            },
            account: row.try_get(2)?,
            prefix: row.try_get(4)?,
            created: row.try_get(11)?,
            expires: row.try_get(12)?,
            revoked: row.try_get(13)?,
            revision: row.try_get(14)?,
            previous: previous.transpose()?,
            made_by: row.try_get(17)?,
            is_disabled: disabled.is_some(),
            owner: StoredOwner::from_row(row)?,
        })
    }
}

impl StoredOwner {
    fn from_row(row: &AnyRow) -> Result<Option<StoredOwner>, StoreError> {
        let id: Option<String> = row.try_get(19)?;
        let cap: Option<String> = row.try_get(20)?;
        let reset: String = row.try_get(21)?;
        let reset = Reset::from_word(&reset).ok_or(StoreError::Corrupt("reset"))?;
        let spending_cap = cap.map(decode_money).transpose()?;
        Ok(id.map(|id| StoredOwner {
            id,
            spending_cap,
            reset,
        }))
    }
}

fn amount(money: Money) -> Amount {
    Amount {
        written: money.to_string(),
        money,
    }
}

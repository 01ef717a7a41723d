//! Accounts: the owners of keys.

use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use uuid::Uuid;

use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::spending::decode_money;
use crate::config::Reset;
use crate::model::Money;

/// The account of keys that name no other.
pub const DEFAULT: &str = "default";

/// The kind of an account that belongs to one person.
pub(super) const PERSON: &str = "person";

/// The kind of an account that several people share.
pub(super) const TEAM: &str = "team";

/// The kind of an account that belongs to nobody.
const SYSTEM: &str = "system";

const COLUMNS: &str = "SELECT id, name, kind, disabled, (SELECT COUNT(*) FROM keys \
     WHERE keys.account = accounts.id AND revoked IS NULL), account_cap, account_reset, \
     (SELECT COUNT(*) FROM memberships WHERE memberships.account = accounts.id) FROM accounts";

/// An account as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountSummary {
    pub id: String,
    pub name: String,
    /// `system`, `person` or `team`.
    pub kind: String,
    pub is_disabled: bool,
    /// How many keys it has that are not revoked.
    pub keys: i64,
    /// How many people belong to it.
    pub members: i64,
    /// The most that all keys together may spend.
    pub spending_cap: Option<Money>,
    pub reset: Reset,
}

impl AccountSummary {
    /// It belongs to a person or a team, and may have a cap.
    pub fn has_owner(&self) -> bool {
        self.kind != SYSTEM
    }

    pub fn is_team(&self) -> bool {
        self.kind == TEAM
    }

    fn from_row(row: &AnyRow) -> Result<AccountSummary, StoreError> {
        let disabled: Option<i64> = row.try_get(3)?;
        let cap: Option<String> = row.try_get(5)?;
        let reset: String = row.try_get(6)?;
        Ok(AccountSummary {
            id: row.try_get(0)?,
            name: row.try_get(1)?,
            kind: row.try_get(2)?,
            is_disabled: disabled.is_some(),
            keys: row.try_get(4)?,
            members: row.try_get(7)?,
            spending_cap: cap.map(decode_money).transpose()?,
            reset: Reset::from_word(&reset).ok_or(StoreError::Corrupt("reset"))?,
        })
    }
}

impl Store {
    /// The accounts of a person, by name; without a person, all of them.
    pub async fn accounts(&self, person: Option<&str>) -> Result<Vec<AccountSummary>, StoreError> {
        let all = format!(
            "{COLUMNS} WHERE $1 = '' OR id IN (SELECT account FROM memberships WHERE person = $1) ORDER BY name"
        );
        let rows = sqlx::query(AssertSqlSafe(all))
            .bind(person.unwrap_or_default().to_owned())
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(AccountSummary::from_row).collect()
    }

    /// An account by its name.
    pub async fn account(&self, name: &str) -> Result<Option<AccountSummary>, StoreError> {
        let row = sqlx::query(AssertSqlSafe(format!("{COLUMNS} WHERE name = $1")))
            .bind(name.to_owned())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(AccountSummary::from_row).transpose()
    }

    /// Tells whether there is an account of the name.
    pub async fn has_account(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.account(name).await?.is_some())
    }
}

/// The id of an account, which is created if there is none of the name.
pub(super) async fn find_or_create(
    transaction: &mut Transaction<'static, Any>,
    name: &str,
) -> Result<String, StoreError> {
    let made = "INSERT INTO accounts (id, name, created) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
    sqlx::query(made)
        .bind(Uuid::now_v7().to_string())
        .bind(name.to_owned())
        .bind(milliseconds_now())
        .execute(&mut **transaction)
        .await?;
    let found = sqlx::query("SELECT id FROM accounts WHERE name = $1")
        .bind(name.to_owned())
        .fetch_one(&mut **transaction)
        .await?;
    Ok(found.try_get(0)?)
}

/// Refuses a name that a person or an account has, or had: its keys would inherit the history of others.
pub(super) async fn check_free(
    transaction: &mut Transaction<'static, Any>,
    name: &str,
) -> Result<(), StoreError> {
    let taken =
        "SELECT 1 FROM accounts WHERE name = $1 UNION SELECT 1 FROM people WHERE handle = $1";
    let taken = sqlx::query(taken)
        .bind(name.to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    match taken {
        Some(_) => Err(StoreError::HandleTaken(name.to_owned())),
        None => Ok(()),
    }
}

/// Creates an account, and returns its id.
pub(super) async fn insert(
    transaction: &mut Transaction<'static, Any>,
    name: &str,
    kind: &'static str,
) -> Result<String, StoreError> {
    let id = Uuid::now_v7().to_string();
    sqlx::query("INSERT INTO accounts (id, name, created, kind) VALUES ($1, $2, $3, $4)")
        .bind(id.clone())
        .bind(name.to_owned())
        .bind(milliseconds_now())
        .bind(kind)
        .execute(&mut **transaction)
        .await?;
    Ok(id)
}

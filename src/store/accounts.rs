//! Accounts: the owners of keys.

use sqlx::{Any, Row as _, Transaction};
use uuid::Uuid;

use super::database::milliseconds_now;
use super::error::StoreError;

/// The account of keys that name no other.
pub const DEFAULT: &str = "default";

/// The kind of an account that belongs to one person.
pub(super) const PERSON: &str = "person";

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

//! Whom keys belong to.

use sqlx::{Any, Row as _, Transaction};
use uuid::Uuid;

use super::{StoreError, milliseconds_now};

/// Of keys that nobody says otherwise of.
pub const DEFAULT: &str = "default";

/// The id of an account, which is made if there is none of the name.
pub(super) async fn named(
    writing: &mut Transaction<'static, Any>,
    name: &str,
) -> Result<String, StoreError> {
    let made = "INSERT INTO accounts (id, name, created) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
    sqlx::query(made)
        .bind(Uuid::now_v7().to_string())
        .bind(name.to_owned())
        .bind(milliseconds_now())
        .execute(&mut **writing)
        .await?;
    let found = sqlx::query("SELECT id FROM accounts WHERE name = $1")
        .bind(name.to_owned())
        .fetch_one(&mut **writing)
        .await?;
    Ok(found.try_get(0)?)
}

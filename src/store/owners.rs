//! Who owns what was written by version 0.1, which knew keys by their names only.

use std::collections::HashMap;

use sqlx::{Any, Row as _, Transaction};

use super::database::Store;
use super::error::StoreError;
use super::spending::decode_money;
use crate::model::Money;

/// What belongs to a name that no key of the store has.
const BY_NAME: &str = "name:";

/// The owner of what was written under a name: the key of the store that has it now, if there is one.
pub(super) async fn owner_of_name(
    transaction: &mut Transaction<'static, Any>,
    name: &str,
) -> Result<String, StoreError> {
    let found = sqlx::query("SELECT id FROM keys WHERE name = $1 AND revoked IS NULL")
        .bind(name.to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    if let Some(row) = found {
        return Ok(row.try_get(0)?);
    }
    sqlx::query("INSERT INTO unclaimed_names (name) VALUES ($1) ON CONFLICT (name) DO NOTHING")
        .bind(name.to_owned())
        .execute(&mut **transaction)
        .await?;
    Ok(format!("{BY_NAME}{name}"))
}

impl Store {
    /// Gives a key of the config what was written under its name, once: then nothing is left there.
    pub async fn adopt(&self, keys: &[(&str, &str)]) -> Result<(), StoreError> {
        let unclaimed = sqlx::query("SELECT name FROM unclaimed_names")
            .fetch_all(&self.pool)
            .await?;
        if unclaimed.is_empty() {
            return Ok(());
        }
        let ids: HashMap<&str, &str> = keys.iter().copied().collect();
        let mut transaction = self.begin_write().await?;
        for row in unclaimed {
            let name: String = row.try_get(0)?;
            if let Some(id) = ids.get(name.as_str()) {
                move_to(&mut transaction, &name, id).await?;
            }
        }
        Ok(transaction.commit().await?)
    }
}

async fn move_to(
    transaction: &mut Transaction<'static, Any>,
    name: &str,
    id: &str,
) -> Result<(), StoreError> {
    let owner = format!("{BY_NAME}{name}");
    sqlx::query("DELETE FROM unclaimed_names WHERE name = $1")
        .bind(name.to_owned())
        .execute(&mut **transaction)
        .await?;
    for statement in [
        "UPDATE responses SET key_id = $1 WHERE key_id = $2",
        "UPDATE tasks SET key_id = $1 WHERE key_id = $2",
    ] {
        sqlx::query(statement)
            .bind(id.to_owned())
            .bind(owner.clone())
            .execute(&mut **transaction)
            .await?;
    }
    let both = "SELECT period, amount FROM spending WHERE key_id IN ($1, $2)";
    let both = sqlx::query(both)
        .bind(id.to_owned())
        .bind(owner.clone())
        .fetch_all(&mut **transaction)
        .await?;
    let mut sums: Vec<(String, Money)> = Vec::new();
    for row in both {
        let (period, amount): (String, Money) = (row.try_get(0)?, decode_money(row.try_get(1)?)?);
        match sums.iter_mut().find(|(known, _)| *known == period) {
            Some((_, sum)) => *sum += amount,
            None => sums.push((period, amount)),
        }
    }
    sqlx::query("DELETE FROM spending WHERE key_id IN ($1, $2)")
        .bind(id.to_owned())
        .bind(owner.clone())
        .execute(&mut **transaction)
        .await?;
    for (period, amount) in sums {
        sqlx::query("INSERT INTO spending (key_id, period, amount) VALUES ($1, $2, $3)")
            .bind(id.to_owned())
            .bind(period)
            .bind(amount.to_string())
            .execute(&mut **transaction)
            .await?;
    }
    Ok(())
}

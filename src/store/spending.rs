//! The spending of keys by day, by month and in total.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::database::{DatabaseKind, Store};
use super::error::StoreError;
use crate::model::{Money, Spending};

/// The names of the periods of a time: `2026-11-15` and `2026-11`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Periods {
    pub day: String,
    pub month: String,
}

pub(super) const EVER: &str = "";

impl Periods {
    pub fn of(moment: i64) -> Periods {
        let moment = Timestamp::from_millisecond(moment).unwrap_or(match moment {
            ..0 => Timestamp::MIN,
            _ => Timestamp::MAX,
        });
        let day = TimeZone::UTC.to_datetime(moment).date();
        Periods {
            day: day.to_string(),
            month: format!("{:04}-{:02}", day.year(), day.month()),
        }
    }
}

impl Store {
    /// What keys had spent in the current periods when this process began, by their ids; without an id, of all keys.
    ///
    /// The sums include what was recorded since; that is subtracted, because the process counts it itself.
    pub async fn spending(
        &self,
        id: Option<&str>,
        began: Timestamp,
        now: Timestamp,
    ) -> Result<HashMap<String, Spending>, StoreError> {
        let is_asked = |parameter| format!("({parameter} = '' OR key_id = {parameter})");
        let id = id.unwrap_or_default();
        self.spending_where(is_asked, id, began, now).await
    }

    /// The same of all keys of an account together, by the account's id.
    pub async fn account_spending(
        &self,
        account: &str,
        began: Timestamp,
        now: Timestamp,
    ) -> Result<Spending, StoreError> {
        let is_of_account =
            |parameter| format!("key_id IN (SELECT id FROM keys WHERE account = {parameter})");
        let of_keys = self.spending_where(is_of_account, account, began, now);
        let mut all = Spending::default();
        for spending in of_keys.await?.into_values() {
            all += spending;
        }
        Ok(all)
    }

    /// `condition`: which keys, by the parameter that has the id.
    async fn spending_where(
        &self,
        condition: impl Fn(&'static str) -> String,
        id: &str,
        began: Timestamp,
        now: Timestamp,
    ) -> Result<HashMap<String, Spending>, StoreError> {
        let now = Periods::of(now.as_millisecond());
        // Both queries see the same snapshot.
        let mut snapshot = self
            .pool
            .begin_with(match self.kind {
                DatabaseKind::Sqlite => "BEGIN",
                DatabaseKind::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            })
            .await?;
        let mut all: HashMap<String, Spending> = HashMap::new();
        let sums = format!(
            "SELECT key_id, period, amount FROM spending WHERE period IN ($1, $2, $3) AND {}",
            condition("$4")
        );
        let sums = sqlx::query(AssertSqlSafe(sums))
            .bind(EVER)
            .bind(now.month.clone())
            .bind(now.day.clone())
            .bind(id.to_owned())
            .fetch_all(&mut *snapshot)
            .await?;
        for row in sums {
            let period: String = row.try_get(1)?;
            let amount = decode_money(row.try_get(2)?)?;
            let spending = all.entry(row.try_get(0)?).or_default();
            match period.as_str() {
                EVER => spending.total = amount,
                period if period == now.day => spending.day = amount,
                _ => spending.month = amount,
            }
        }
        let since = format!(
            "SELECT key_id, ended, cost FROM usage WHERE ended >= $1 AND {}",
            condition("$2")
        );
        let since = sqlx::query(AssertSqlSafe(since))
            .bind(began.as_millisecond())
            .bind(id.to_owned())
            .fetch_all(&mut *snapshot)
            .await?;
        for row in since {
            let cost = decode_money(row.try_get(2)?)?;
            let of = Periods::of(row.try_get(1)?);
            let spending = all.entry(row.try_get(0)?).or_default();
            spending.total = spending.total.saturating_sub(cost);
            if of.month == now.month {
                spending.month = spending.month.saturating_sub(cost);
            }
            if of.day == now.day {
                spending.day = spending.day.saturating_sub(cost);
            }
        }
        Ok(all)
    }
}

/// Raises what a key has spent in a day, in its month and in total, inside of a write transaction.
pub(super) async fn raise(
    transaction: &mut Transaction<'static, Any>,
    key: &str,
    periods: &Periods,
    by: Money,
) -> Result<(), StoreError> {
    let before = "SELECT period, amount FROM spending WHERE key_id = $1 AND period IN ($2, $3, $4)";
    let before = sqlx::query(before)
        .bind(key.to_owned())
        .bind(periods.day.clone())
        .bind(periods.month.clone())
        .bind(EVER.to_owned())
        .fetch_all(&mut **transaction)
        .await?;
    let mut amounts = [by; 3];
    let names = [&periods.day, &periods.month, EVER];
    for row in before {
        let period: String = row.try_get(0)?;
        let amount = decode_money(row.try_get(1)?)?;
        let of = names.iter().position(|name| **name == period);
        let of = of.ok_or(StoreError::Corrupt("period"))?;
        amounts[of] += amount;
    }
    let [day, month, ever] = amounts.map(|amount| amount.to_string());
    let put = "INSERT INTO spending (key_id, period, amount) VALUES ($1, $2, $3), ($1, $4, $5), ($1, $6, $7) \
         ON CONFLICT (key_id, period) DO UPDATE SET amount = excluded.amount";
    sqlx::query(put)
        .bind(key.to_owned())
        .bind(periods.day.clone())
        .bind(day)
        .bind(periods.month.clone())
        .bind(month)
        .bind(EVER.to_owned())
        .bind(ever)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

pub(super) fn decode_money(text: String) -> Result<Money, StoreError> {
    Money::from_decimal(&text).ok_or(StoreError::Corrupt("amount"))
}

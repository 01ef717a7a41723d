//! Adds up days that are over, so that charts of all keys read few rows.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use sqlx::{AssertSqlSafe, Row as _};

use super::database::{Store, WriteTransaction, milliseconds_now};
use super::error::StoreError;
use super::spending::Periods;
use super::usage_rows::placeholders;
use super::usage_sums::UsageSum;

/// How long after a day its records have hardly ever still to come. Gateways of older versions, which run beside this one during
/// an upgrade, do not know of sums: what they record is of younger days.
const SETTLED_AFTER: i64 = 3;

/// In milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Rows of one INSERT.
const ROWS: usize = 50;

/// Kind and name of a sum of one day.
type SumKey = (&'static str, String);

/// The days before another one that are not added up.
const UNSUMMED: &str = "SELECT DISTINCT day FROM daily WHERE day < $1 \
     AND day NOT IN (SELECT day FROM daily_sums WHERE kind = 'day')";

impl Store {
    /// Adds up the days that are over at a time and are not added up yet; returns how many these were.
    pub async fn sum_up_days(&self, time: Timestamp) -> Result<usize, StoreError> {
        let today = TimeZone::UTC.to_datetime(time).date();
        let before = today.saturating_sub(SETTLED_AFTER.days()).to_string();
        let mut count = 0;
        loop {
            let unsummed = sqlx::query(UNSUMMED).bind(before.clone());
            let unsummed = unsummed.fetch_all(&self.pool).await?;
            for row in &unsummed {
                self.sum_up(row.try_get(0)?).await?;
            }
            count += unsummed.len();
            if self.note_summed(&before).await? {
                return Ok(count);
            }
        }
    }

    /// Notes that all days before another one are added up, unless a late record has changed that.
    async fn note_summed(&self, before: &str) -> Result<bool, StoreError> {
        let mut transaction = self.begin_write().await?;
        let unsummed = sqlx::query(UNSUMMED).bind(before.to_owned());
        if unsummed.fetch_optional(&mut *transaction).await?.is_some() {
            return Ok(false);
        }
        let earlier = "DELETE FROM daily_sums WHERE kind = 'until'";
        sqlx::query(earlier).execute(&mut *transaction).await?;
        let columns = UsageSum::COLUMNS.join(", ");
        let insert = format!(
            "INSERT INTO daily_sums (kind, day, name, {columns}) VALUES ('until', $1, '', 0, 0, 0, 0, 0, 0, 0, 0, '0')"
        );
        sqlx::query(AssertSqlSafe(insert))
            .bind(before.to_owned())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
    }

    async fn sum_up(&self, day: String) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        let columns = UsageSum::COLUMNS.join(", ");
        let daily = format!("SELECT {columns}, key_name, model FROM daily WHERE day = $1");
        let rows = sqlx::query(AssertSqlSafe(daily))
            .bind(day.clone())
            .fetch_all(&mut *transaction)
            .await?;
        let mut sums: BTreeMap<SumKey, UsageSum> = BTreeMap::new();
        for row in &rows {
            let sum = UsageSum::from_row(row)?;
            let (key, model) = (row.try_get(9)?, row.try_get(10)?);
            for at in [("day", String::new()), ("key", key), ("model", model)] {
                sums.entry(at).or_default().add(&sum);
            }
        }
        // Another gateway may have added it up in the meantime.
        delete(&mut transaction, &day).await?;
        let sums: Vec<(SumKey, UsageSum)> = sums.into_iter().collect();
        for some in sums.chunks(ROWS) {
            let values = placeholders(self.kind, 0, some.len(), 3 + UsageSum::COLUMNS.len());
            let insert =
                format!("INSERT INTO daily_sums (kind, day, name, {columns}) VALUES {values}");
            let mut insert = sqlx::query(AssertSqlSafe(insert)).persistent(false);
            for ((kind, name), sum) in some {
                insert = insert.bind(*kind).bind(day.clone()).bind(name.clone());
                insert = sum.bind(insert);
            }
            insert.execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }
}

/// Forgets the sums of the day of a late record; they are made anew later.
pub(super) async fn forget(
    transaction: &mut WriteTransaction,
    recorded: i64,
) -> Result<(), StoreError> {
    let age = milliseconds_now().saturating_sub(recorded);
    if age <= (SETTLED_AFTER - 1) * DAY {
        return Ok(());
    }
    let day = Periods::of(recorded).day;
    delete(transaction, &day).await?;
    sqlx::query("UPDATE daily_sums SET day = $1 WHERE kind = 'until' AND day > $1")
        .bind(day)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

async fn delete(transaction: &mut WriteTransaction, day: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM daily_sums WHERE kind IN ('day', 'key', 'model') AND day = $1")
        .bind(day.to_owned())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

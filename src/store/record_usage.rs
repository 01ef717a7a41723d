//! Records usage: a row for each record, and the sums of days and of spending, each record once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::database::{Store, WriteTransaction};
use super::error::StoreError;
use super::leases::shrink;
use super::owners::owner_of_name;
use super::spending::{Periods, raise};
use super::summed_days;
use super::usage_rows::{self, text};
use super::usage_sums::UsageSum;
use crate::model::{Money, UsageRecord};

/// In milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// The sums of records by day of UTC (since 1970), id and name of the key, and model.
type Sums<'a> = BTreeMap<(i64, String, Cow<'a, str>, Cow<'a, str>), Added>;

#[derive(Default)]
struct Added {
    sum: UsageSum,
    /// The part of the cost that is the lease holder's own.
    own: Money,
}

impl Store {
    /// Records the records that are new, all of them or none; returns how many were new.
    pub async fn record(&self, records: &[UsageRecord<'_>]) -> Result<usize, StoreError> {
        if records.is_empty() {
            return Ok(0);
        }
        let mut transaction = self.begin_write().await?;
        if usage_rows::insert(&mut transaction, self.kind, records).await? {
            self.add_up(&mut transaction, records).await?;
            transaction.commit().await?;
            return Ok(records.len());
        }
        // Rare: some records exist already, because an earlier answer was lost.
        transaction.rollback().await?;
        let mut transaction = self.begin_write().await?;
        let mut known: HashSet<String> =
            usage_rows::known(&mut transaction, self.kind, records).await?;
        let is_new = |record: &&UsageRecord<'_>| known.insert(text(&record.id).into_owned());
        let new: Vec<UsageRecord<'_>> = records.iter().filter(is_new).cloned().collect();
        if !usage_rows::insert(&mut transaction, self.kind, &new).await? {
            return Err(StoreError::Corrupt("id of a record"));
        }
        self.add_up(&mut transaction, &new).await?;
        transaction.commit().await?;
        Ok(new.len())
    }

    async fn add_up(
        &self,
        transaction: &mut WriteTransaction,
        records: &[UsageRecord<'_>],
    ) -> Result<(), StoreError> {
        let holder = self.holder.as_deref();
        let mut sums = Sums::default();
        for record in records {
            let day = record.at.div_euclid(DAY);
            let id = match &*record.key_id {
                "" => owner_of_name(transaction, &record.key).await?,
                id => text(id).into_owned(),
            };
            let at = (day, id, text(&record.key), text(&record.model));
            let added = sums.entry(at).or_default();
            added.sum.add(&UsageSum::of(record));
            if holder.is_some_and(|holder| holder.is_own(record.at)) {
                added.own += record.cost;
            }
        }
        let mut spent: BTreeMap<(i64, &str), (Money, Money)> = BTreeMap::new();
        let days: BTreeSet<i64> = sums.keys().map(|(day, ..)| *day).collect();
        for day in days {
            summed_days::forget(transaction, day.saturating_mul(DAY)).await?;
        }
        for ((day, id, key, model), added) in &sums {
            add_to_daily(transaction, *day, key, model, added.sum).await?;
            let (all, own) = spent.entry((*day, id)).or_default();
            *all += added.sum.cost;
            *own += added.own;
        }
        for ((day, key), (all, own)) in spent {
            let periods = Periods::of(day.saturating_mul(DAY));
            if !all.is_zero() {
                raise(transaction, key, &periods, all).await?;
            }
            if let Some(holder) = holder.filter(|_| !own.is_zero()) {
                shrink(transaction, holder, key, &periods, own).await?;
            }
        }
        Ok(())
    }
}

async fn add_to_daily(
    transaction: &mut WriteTransaction,
    day: i64,
    key: &str,
    model: &str,
    mut sum: UsageSum,
) -> Result<(), StoreError> {
    let Periods { day, .. } = Periods::of(day.saturating_mul(DAY));
    let before = "SELECT requests, estimated, input, cached, cache_written, output, thinking, images, cost \
         FROM daily WHERE day = $1 AND key_name = $2 AND model = $3";
    let before = sqlx::query(before)
        .bind(day.clone())
        .bind(key.to_owned())
        .bind(model.to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    if let Some(row) = before {
        sum.add(&UsageSum::from_row(&row)?);
    }
    let put = "INSERT INTO daily (day, key_name, model, requests, estimated, input, cached, cache_written, output, \
         thinking, images, cost) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (day, key_name, model) DO UPDATE SET requests = excluded.requests, \
         estimated = excluded.estimated, input = excluded.input, cached = excluded.cached, \
         cache_written = excluded.cache_written, output = excluded.output, thinking = excluded.thinking, \
         images = excluded.images, cost = excluded.cost";
    let put = sqlx::query(put)
        .bind(day)
        .bind(key.to_owned())
        .bind(model.to_owned());
    sum.bind(put).execute(&mut **transaction).await?;
    Ok(())
}

//! Receipts become rows, and are added to sums and amounts, each of them once.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use sqlx::{Any, Transaction};

use super::leases::shrink;
use super::rows::{self, text};
use super::spending::{Periods, raise};
use super::usage::UsageSum;
use super::{Store, StoreError, stored};
use crate::model::{Money, UsageRecord};

/// In milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

type Writing = Transaction<'static, Any>;

/// What several receipts come to, of a day of UTC (since 1970), a key and a model.
type Sums<'a> = BTreeMap<(i64, Cow<'a, str>, Cow<'a, str>), Added>;

#[derive(Default)]
struct Added {
    sum: UsageSum,
    /// Of the cost, what is the holder's own.
    own: Money,
}

impl Store {
    /// Writes down what is not written down yet, all of it or nothing; says how many those were.
    pub async fn record(&self, receipts: &[UsageRecord<'_>]) -> Result<usize, StoreError> {
        if receipts.is_empty() {
            return Ok(0);
        }
        let mut writing = self.write().await?;
        if rows::insert(&mut writing, self.kind, receipts).await? {
            self.add_up(&mut writing, receipts).await?;
            writing.commit().await?;
            return Ok(receipts.len());
        }
        // Seldom: some were there, after an answer that was lost, and which ones must be known before.
        writing.rollback().await?;
        let mut writing = self.write().await?;
        let mut known: HashSet<String> = rows::known(&mut writing, self.kind, receipts).await?;
        let is_new = |receipt: &&UsageRecord<'_>| known.insert(text(&receipt.id).into_owned());
        let new: Vec<UsageRecord<'_>> = receipts.iter().filter(is_new).cloned().collect();
        if !rows::insert(&mut writing, self.kind, &new).await? {
            return Err(StoreError::Corrupt("id of a receipt"));
        }
        self.add_up(&mut writing, &new).await?;
        writing.commit().await?;
        Ok(new.len())
    }

    async fn add_up(
        &self,
        writing: &mut Writing,
        receipts: &[UsageRecord<'_>],
    ) -> Result<(), StoreError> {
        let holder = self.holder.as_deref();
        let mut sums = Sums::default();
        for receipt in receipts {
            let day = receipt.at.div_euclid(DAY);
            let at = (day, text(&receipt.key), text(&receipt.model));
            let added = sums.entry(at).or_default();
            added.sum.add(&UsageSum::of(receipt));
            if holder.is_some_and(|holder| holder.is_own(receipt.at)) {
                added.own += receipt.cost;
            }
        }
        let mut spent: BTreeMap<(i64, &str), (Money, Money)> = BTreeMap::new();
        for ((day, key, model), added) in &sums {
            add_to_daily(writing, *day, key, model, added.sum).await?;
            let (all, own) = spent.entry((*day, key)).or_default();
            *all += added.sum.cost;
            *own += added.own;
        }
        for ((day, key), (all, own)) in spent {
            let periods = Periods::of(day.saturating_mul(DAY));
            if !all.is_zero() {
                raise(writing, key, &periods, all).await?;
            }
            if let Some(holder) = holder.filter(|_| !own.is_zero()) {
                shrink(writing, holder, key, &periods, own).await?;
            }
        }
        Ok(())
    }
}

async fn add_to_daily(
    writing: &mut Writing,
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
        .fetch_optional(&mut **writing)
        .await?;
    if let Some(row) = before {
        sum.add(&UsageSum::read(&row)?);
    }
    let put = "INSERT INTO daily (day, key_name, model, requests, estimated, input, cached, cache_written, output, \
         thinking, images, cost) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (day, key_name, model) DO UPDATE SET requests = excluded.requests, \
         estimated = excluded.estimated, input = excluded.input, cached = excluded.cached, \
         cache_written = excluded.cache_written, output = excluded.output, thinking = excluded.thinking, \
         images = excluded.images, cost = excluded.cost";
    sqlx::query(put)
        .bind(day)
        .bind(key.to_owned())
        .bind(model.to_owned())
        .bind(stored(sum.requests))
        .bind(stored(sum.estimated))
        .bind(stored(sum.input))
        .bind(stored(sum.cached))
        .bind(stored(sum.cache_written))
        .bind(stored(sum.output))
        .bind(stored(sum.thinking))
        .bind(stored(sum.images))
        .bind(sum.cost.to_string())
        .execute(&mut **writing)
        .await?;
    Ok(())
}

//! Sums of usage by day, key and model.

use std::collections::HashMap;

use jiff::civil::Date;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::database::{Store, from_column};
use super::error::StoreError;
use super::spending::decode_money;
use crate::model::{Money, UsageRecord};

/// The usage of several requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageSum {
    pub requests: u64,
    /// Of these, how many were not counted by an upstream alone.
    pub estimated: u64,
    pub input: u64,
    pub cached: u64,
    pub cache_written: u64,
    pub output: u64,
    pub thinking: u64,
    pub images: u64,
    pub cost: Money,
}

impl UsageSum {
    /// The names of the fields, in their order, for tables.
    pub const COLUMNS: [&str; 9] = [
        "requests",
        "estimated",
        "input",
        "cached",
        "cache_written",
        "output",
        "thinking",
        "images",
        "cost",
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGrouping {
    Key,
    Model,
    Day,
}

impl Store {
    /// The sums from a day on, grouped by key, model or day.
    pub async fn usage_sums(
        &self,
        by: UsageGrouping,
        since: Option<Date>,
    ) -> Result<Vec<(String, UsageSum)>, StoreError> {
        let since = since.map(|day| day.to_string()).unwrap_or_default();
        let daily = "SELECT requests, estimated, input, cached, cache_written, output, thinking, images, cost, \
             day, key_name, model FROM daily WHERE day >= $1";
        let rows = sqlx::query(daily).bind(since).fetch_all(&self.pool).await?;
        let column: usize = match by {
            UsageGrouping::Day => 9,
            UsageGrouping::Key => 10,
            UsageGrouping::Model => 11,
        };
        let mut sums: HashMap<String, UsageSum> = HashMap::new();
        for row in &rows {
            let of = sums.entry(row.try_get(column)?).or_default();
            of.add(&UsageSum::from_row(row)?);
        }
        let mut sums: Vec<(String, UsageSum)> = sums.into_iter().collect();
        sums.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(sums)
    }
}

impl UsageSum {
    pub(super) fn of(record: &UsageRecord<'_>) -> UsageSum {
        UsageSum {
            requests: 1,
            estimated: u64::from(record.estimated),
            input: record.usage.input,
            cached: record.usage.cached,
            cache_written: record.usage.cache_written,
            output: record.usage.output,
            thinking: record.usage.thinking,
            images: record.images,
            cost: record.cost,
        }
    }

    pub(super) fn from_row(row: &AnyRow) -> Result<UsageSum, StoreError> {
        let count = |column: usize| row.try_get(column).map(from_column);
        Ok(UsageSum {
            requests: count(0)?,
            estimated: count(1)?,
            input: count(2)?,
            cached: count(3)?,
            cache_written: count(4)?,
            output: count(5)?,
            thinking: count(6)?,
            images: count(7)?,
            cost: decode_money(row.try_get(8)?)?,
        })
    }

    /// Adds counts; those beyond u64 are capped, as an upstream may send any number.
    pub fn add(&mut self, other: &UsageSum) {
        for (count, more) in [
            (&mut self.requests, other.requests),
            (&mut self.estimated, other.estimated),
            (&mut self.input, other.input),
            (&mut self.cached, other.cached),
            (&mut self.cache_written, other.cache_written),
            (&mut self.output, other.output),
            (&mut self.thinking, other.thinking),
            (&mut self.images, other.images),
        ] {
            *count = count.saturating_add(more);
        }
        self.cost += other.cost;
    }
}

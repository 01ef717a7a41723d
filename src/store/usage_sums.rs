//! Sums of usage by day, key and model.

use jiff::civil::Date;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row as _};

use super::database::{DatabaseKind, Store, from_column, to_column};
use super::error::StoreError;
use super::spending::decode_money;
use crate::model::{Money, UsageRecord};

type Statement<'q> = Query<'q, Any, AnyArguments>;

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

impl UsageGrouping {
    /// The column of `daily` by which it groups.
    pub(super) const fn column(self) -> &'static str {
        match self {
            UsageGrouping::Key => "key_name",
            UsageGrouping::Model => "model",
            UsageGrouping::Day => "day",
        }
    }
}

impl Store {
    /// The sums from a day on, grouped by key, model or day.
    pub async fn usage_sums(
        &self,
        by: UsageGrouping,
        since: Option<Date>,
    ) -> Result<Vec<(String, UsageSum)>, StoreError> {
        let since = since.map(|day| day.to_string()).unwrap_or_default();
        let (sums, column) = (grouped_columns(self.kind), by.column());
        let daily = format!("SELECT {sums}, {column} FROM daily WHERE day >= $1 GROUP BY {column}");
        let rows = sqlx::query(AssertSqlSafe(daily)).bind(since);
        let mut sums = Vec::new();
        for row in rows.fetch_all(&self.pool).await? {
            sums.push((row.try_get(9)?, UsageSum::from_group(&row)?));
        }
        sums.sort_by(|(one, _): &(String, _), (other, _)| one.cmp(other));
        Ok(sums)
    }
}

/// The columns of a grouped SELECT that [`UsageSum::from_group`] reads. The database adds up the counts; costs, which are decimals in
/// a text, are only put side by side.
pub(super) fn grouped_columns(kind: DatabaseKind) -> String {
    UsageSum::COLUMNS
        .map(|column| match (kind, column) {
            (DatabaseKind::Sqlite, "cost") => "group_concat(cost, ' ')".to_owned(),
            (DatabaseKind::Postgres, "cost") => "string_agg(cost, ' ')".to_owned(),
            // SUM of SQLite fails where the sum is too large for an integer. TOTAL is exact up to 2^53, which no sum of
            // real tokens reaches.
            (DatabaseKind::Sqlite, count) => format!("CAST(TOTAL({count}) AS INTEGER)"),
            (DatabaseKind::Postgres, count) => {
                format!("LEAST(SUM({count}), {})::BIGINT", i64::MAX)
            }
        })
        .join(", ")
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

    /// Reads a row that begins with [`UsageSum::COLUMNS`].
    pub(super) fn from_row(row: &AnyRow) -> Result<UsageSum, StoreError> {
        UsageSum::read(row, decode_money(row.try_get(8)?)?)
    }

    /// Reads a row that begins with [`grouped_columns`].
    pub(super) fn from_group(row: &AnyRow) -> Result<UsageSum, StoreError> {
        let costs: String = row.try_get(8)?;
        let mut cost = Money::ZERO;
        for amount in costs.split(' ') {
            cost += Money::from_decimal(amount).ok_or(StoreError::Corrupt("amount"))?;
        }
        UsageSum::read(row, cost)
    }

    fn read(row: &AnyRow, cost: Money) -> Result<UsageSum, StoreError> {
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
            cost,
        })
    }

    /// Binds the values of [`UsageSum::COLUMNS`].
    pub(super) fn bind<'q>(&self, statement: Statement<'q>) -> Statement<'q> {
        statement
            .bind(to_column(self.requests))
            .bind(to_column(self.estimated))
            .bind(to_column(self.input))
            .bind(to_column(self.cached))
            .bind(to_column(self.cache_written))
            .bind(to_column(self.output))
            .bind(to_column(self.thinking))
            .bind(to_column(self.images))
            .bind(self.cost.to_string())
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

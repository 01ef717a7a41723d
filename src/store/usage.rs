//! What was used: a row for every request that has been paid for, and sums by day, key and model.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::civil::Date;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::spending::{EVER, Periods, raise, read_money};
use super::{Store, StoreError, counted, stored};
use crate::model::{Money, Receipt};

/// Rows of one statement: 19 values each, of the 32,766 that SQLite takes.
const ROWS: usize = 500;

const COLUMNS: [&str; 19] = [
    "id",
    "ended",
    "key_name",
    "model",
    "upstream",
    "format",
    "stream",
    "status",
    "input",
    "cached",
    "cache_written",
    "output",
    "thinking",
    "audio_input",
    "audio_output",
    "image_output",
    "images",
    "estimated",
    "cost",
];

/// What several requests come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumBy {
    Key,
    Model,
    Day,
}

impl Store {
    /// Writes down what is not written down yet, all of it or nothing; says how many those were.
    pub async fn record(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        if receipts.is_empty() {
            return Ok(0);
        }
        let mut writing = self.write().await?;
        let mut sums: BTreeMap<(String, String, String), Sum> = BTreeMap::new();
        let mut spent: BTreeMap<(String, String), Money> = BTreeMap::new();
        let mut new = 0;
        for rows in receipts.chunks(ROWS) {
            let mut inserted = insert(&mut writing, rows).await?;
            // One that stands there twice is new once.
            for receipt in rows.iter().filter(|one| inserted.remove(&text(&one.id))) {
                new += 1;
                let Periods { day, month } = Periods::of(receipt.at);
                let key = text(&receipt.key);
                let at = (day.clone(), key.clone(), text(&receipt.model));
                sums.entry(at).or_default().add(&Sum::of(receipt));
                if !receipt.cost.is_zero() {
                    for period in [day, month, EVER.to_owned()] {
                        *spent.entry((key.clone(), period)).or_default() += receipt.cost;
                    }
                }
            }
        }
        for ((day, key, model), sum) in sums {
            add_to_daily(&mut writing, &day, &key, &model, sum).await?;
        }
        for ((key, period), amount) in spent {
            raise(&mut writing, &key, &period, amount).await?;
        }
        writing.commit().await?;
        Ok(new)
    }

    /// Sums of the days from one on, each under its key, model or day.
    pub async fn sums(
        &self,
        by: SumBy,
        since: Option<Date>,
    ) -> Result<Vec<(String, Sum)>, StoreError> {
        let since = since.map(|day| day.to_string()).unwrap_or_default();
        let daily = "SELECT requests, estimated, input, cached, cache_written, output, thinking, images, cost, \
             day, key_name, model FROM daily WHERE day >= $1";
        let rows = sqlx::query(daily).bind(since).fetch_all(&self.pool).await?;
        let column: usize = match by {
            SumBy::Day => 9,
            SumBy::Key => 10,
            SumBy::Model => 11,
        };
        let mut sums: HashMap<String, Sum> = HashMap::new();
        for row in &rows {
            let of = sums.entry(row.try_get(column)?).or_default();
            of.add(&Sum::read(row)?);
        }
        let mut sums: Vec<(String, Sum)> = sums.into_iter().collect();
        sums.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(sums)
    }
}

/// The ids of those that were not there yet.
async fn insert(
    writing: &mut Transaction<'static, Any>,
    receipts: &[Receipt],
) -> Result<HashSet<String>, StoreError> {
    let values: Vec<String> = (0..receipts.len())
        .map(|row| {
            let first = row * COLUMNS.len() + 1;
            let places: Vec<String> = (first..first + COLUMNS.len())
                .map(|place| format!("${place}"))
                .collect();
            format!("({})", places.join(", "))
        })
        .collect();
    let insert = format!(
        "INSERT INTO usage ({}) VALUES {} ON CONFLICT (id) DO NOTHING RETURNING id",
        COLUMNS.join(", "),
        values.join(", ")
    );
    let mut query = sqlx::query(AssertSqlSafe(insert));
    for receipt in receipts {
        let usage = &receipt.usage;
        query = query
            .bind(text(&receipt.id))
            .bind(receipt.at)
            .bind(text(&receipt.key))
            .bind(text(&receipt.model))
            .bind(text(&receipt.upstream))
            .bind(text(&receipt.format))
            .bind(i64::from(receipt.stream))
            .bind(i64::from(receipt.status))
            .bind(stored(usage.input))
            .bind(stored(usage.cached))
            .bind(stored(usage.cache_written))
            .bind(stored(usage.output))
            .bind(stored(usage.thinking))
            .bind(stored(usage.audio_input))
            .bind(stored(usage.audio_output))
            .bind(stored(usage.image_output))
            .bind(stored(receipt.images))
            .bind(i64::from(receipt.estimated))
            .bind(receipt.cost.to_string());
    }
    let rows = query.fetch_all(&mut **writing).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

async fn add_to_daily(
    writing: &mut Transaction<'static, Any>,
    day: &str,
    key: &str,
    model: &str,
    mut sum: Sum,
) -> Result<(), StoreError> {
    let before = "SELECT requests, estimated, input, cached, cache_written, output, thinking, images, cost \
         FROM daily WHERE day = $1 AND key_name = $2 AND model = $3";
    let before = sqlx::query(before)
        .bind(day.to_owned())
        .bind(key.to_owned())
        .bind(model.to_owned())
        .fetch_optional(&mut **writing)
        .await?;
    if let Some(row) = before {
        sum.add(&Sum::read(&row)?);
    }
    let put = "INSERT INTO daily (day, key_name, model, requests, estimated, input, cached, cache_written, output, \
         thinking, images, cost) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (day, key_name, model) DO UPDATE SET requests = excluded.requests, \
         estimated = excluded.estimated, input = excluded.input, cached = excluded.cached, \
         cache_written = excluded.cache_written, output = excluded.output, thinking = excluded.thinking, \
         images = excluded.images, cost = excluded.cost";
    sqlx::query(put)
        .bind(day.to_owned())
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

/// PostgreSQL takes no NUL in a text, and one odd name must not stop all the others.
fn text(text: &str) -> String {
    text.replace('\0', "")
}

impl Sum {
    fn of(receipt: &Receipt) -> Sum {
        Sum {
            requests: 1,
            estimated: u64::from(receipt.estimated),
            input: receipt.usage.input,
            cached: receipt.usage.cached,
            cache_written: receipt.usage.cache_written,
            output: receipt.usage.output,
            thinking: receipt.usage.thinking,
            images: receipt.images,
            cost: receipt.cost,
        }
    }

    fn read(row: &AnyRow) -> Result<Sum, StoreError> {
        let count = |column: usize| row.try_get(column).map(counted);
        Ok(Sum {
            requests: count(0)?,
            estimated: count(1)?,
            input: count(2)?,
            cached: count(3)?,
            cache_written: count(4)?,
            output: count(5)?,
            thinking: count(6)?,
            images: count(7)?,
            cost: read_money(row.try_get(8)?)?,
        })
    }

    /// Counts that no integer holds stay at the largest: what an upstream says must not stop the rest.
    pub fn add(&mut self, other: &Sum) {
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

//! What some keys have used in some days: by day, by model and by key.

use std::collections::BTreeMap;

use futures_util::TryStreamExt as _;
use jiff::civil::Date;
use sqlx::Row as _;

use super::database::Store;
use super::error::StoreError;
use super::usage_sums::UsageSum;

/// Whose usage is asked for, and of when.
#[derive(Debug, Clone)]
pub struct UsageFilter {
    /// The days of UTC; both are part of it.
    pub from: Date,
    pub until: Date,
    /// The name of an account; `None`: all.
    pub account: Option<String>,
    /// The name of a key.
    pub key: Option<String>,
    pub model: Option<String>,
}

/// The same usage, added up in three ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageReport {
    pub total: UsageSum,
    pub days: BTreeMap<String, UsageSum>,
    pub models: BTreeMap<String, UsageSum>,
    pub keys: BTreeMap<String, UsageSum>,
}

impl Store {
    /// Adds up the usage of days. Rows are read one by one: there may be many of them.
    pub async fn usage_report(&self, filter: &UsageFilter) -> Result<UsageReport, StoreError> {
        let daily = "SELECT requests, estimated, input, cached, cache_written, output, thinking, images, cost, \
             day, model, key_name FROM daily WHERE day >= $1 AND day <= $2 AND ($3 = '' OR key_name = $3) \
             AND ($4 = '' OR model = $4) AND ($5 = '' OR key_name IN (SELECT keys.name FROM keys \
             JOIN accounts ON accounts.id = keys.account WHERE accounts.name = $5))";
        let mut rows = sqlx::query(daily)
            .bind(filter.from.to_string())
            .bind(filter.until.to_string())
            .bind(filter.key.clone().unwrap_or_default())
            .bind(filter.model.clone().unwrap_or_default())
            .bind(filter.account.clone().unwrap_or_default())
            .fetch(&self.pool);
        let mut report = UsageReport::default();
        while let Some(row) = rows.try_next().await? {
            let sum = UsageSum::from_row(&row)?;
            report.total.add(&sum);
            let groups = [&mut report.days, &mut report.models, &mut report.keys];
            for (column, group) in (9..).zip(groups) {
                let name: String = row.try_get::<String, usize>(column)?;
                group.entry(name).or_default().add(&sum);
            }
        }
        Ok(report)
    }
}

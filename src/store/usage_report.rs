//! What some keys have used in some days: by day, by model and by key.

use std::collections::BTreeMap;

use jiff::civil::Date;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::database::{DatabaseKind, Store};
use super::error::StoreError;
use super::usage_sums::{UsageSum, grouped_columns};

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

/// Days that are added up, of all keys.
const SUMMED: &str = "daily_sums WHERE day >= $1 AND day <= $2 AND kind =";

/// The days that are not, of all keys.
const UNSUMMED: &str = "daily WHERE day >= $1 AND day <= $2 \
     AND day NOT IN (SELECT day FROM daily_sums WHERE kind = 'day')";

/// All days, of some keys or of one model.
const FILTERED: &str = "daily WHERE day >= $1 AND day <= $2 AND ($3 = '' OR key_name = $3) \
     AND ($4 = '' OR model = $4) AND ($5 = '' OR key_name IN (SELECT keys.name FROM keys \
     JOIN accounts ON accounts.id = keys.account WHERE accounts.name = $5))";

impl UsageFilter {
    const fn is_of_all(&self) -> bool {
        self.account.is_none() && self.key.is_none() && self.model.is_none()
    }

    /// One statement, so that all sums are those of one moment. The columns behind the sums are the kind of the group and its one or
    /// two names.
    fn statement(&self, kind: DatabaseKind) -> String {
        let sums = grouped_columns(kind);
        let by_day = |rows: &str| format!("SELECT {sums}, 'day', day, '' FROM {rows} GROUP BY day");
        let by_key = |rows: &str| {
            format!("SELECT {sums}, 'pair', key_name, model FROM {rows} GROUP BY key_name, model")
        };
        let summed = |kind: &str| {
            format!("SELECT {sums}, '{kind}', name, '' FROM {SUMMED} '{kind}' GROUP BY name")
        };
        let parts = match self.is_of_all() {
            true => vec![
                by_day(&format!("{SUMMED} 'day'")),
                summed("key"),
                summed("model"),
                by_day(UNSUMMED),
                by_key(UNSUMMED),
            ],
            false => vec![by_day(FILTERED), by_key(FILTERED)],
        };
        parts.join(" UNION ALL ")
    }
}

impl UsageReport {
    fn add(&mut self, row: &AnyRow) -> Result<(), StoreError> {
        let sum = UsageSum::from_group(row)?;
        let (kind, name): (String, String) = (row.try_get(9)?, row.try_get(10)?);
        match kind.as_str() {
            "day" => {
                self.total.add(&sum);
                self.days.entry(name).or_default().add(&sum);
            }
            "model" => self.models.entry(name).or_default().add(&sum),
            "key" => self.keys.entry(name).or_default().add(&sum),
            _ => {
                self.keys.entry(name).or_default().add(&sum);
                let model = row.try_get(11)?;
                self.models.entry(model).or_default().add(&sum);
            }
        }
        Ok(())
    }
}

impl Store {
    /// Adds up the usage of days; the database does most of it.
    pub async fn usage_report(&self, filter: &UsageFilter) -> Result<UsageReport, StoreError> {
        let statement = filter.statement(self.kind);
        let mut rows = sqlx::query(AssertSqlSafe(statement))
            .bind(filter.from.to_string())
            .bind(filter.until.to_string());
        if !filter.is_of_all() {
            for given in [&filter.key, &filter.model, &filter.account] {
                rows = rows.bind(given.clone().unwrap_or_default());
            }
        }
        let mut report = UsageReport::default();
        for row in rows.fetch_all(&self.pool).await? {
            report.add(&row)?;
        }
        Ok(report)
    }
}

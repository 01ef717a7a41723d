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

/// The first day that is not added up.
const UNTIL: &str =
    "COALESCE((SELECT summed.day FROM daily_sums summed WHERE summed.kind = 'until'), '')";

impl UsageFilter {
    /// The conditions on `daily` and what is bound for them, behind the days.
    fn conditions(&self) -> Vec<(&'static str, &String)> {
        const OF_ACCOUNT: &str = "key_name IN (SELECT keys.name FROM keys \
             JOIN accounts ON accounts.id = keys.account WHERE accounts.name = ";
        let conditions = [
            ("(key_name = ", &self.key),
            ("(model = ", &self.model),
            (OF_ACCOUNT, &self.account),
        ];
        let given = conditions.into_iter();
        given
            .filter_map(|(condition, value)| Some((condition, value.as_ref()?)))
            .collect()
    }

    /// One statement, so that all sums are those of one moment. The columns behind the sums are the kind of the group and its one or
    /// two names.
    fn statement(&self, kind: DatabaseKind) -> String {
        let sums = grouped_columns(kind);
        let days = "day >= $1 AND day <= $2";
        let conditions = self.conditions();
        let mut parts = Vec::new();
        if conditions.is_empty() {
            // With two conditions for its beginning, SQLite would read the days of the wider one.
            let later = match kind {
                DatabaseKind::Sqlite => "MAX",
                DatabaseKind::Postgres => "GREATEST",
            };
            let columns = [("day", "day"), ("key", "key_name"), ("model", "model")];
            for (kind, column) in columns {
                let name = if kind == "day" { "day" } else { "name" };
                parts.push(format!(
                    "SELECT {sums}, '{kind}', {name}, '' FROM daily_sums WHERE kind = '{kind}' AND {days} AND day < {UNTIL} \
                     GROUP BY {name}"
                ));
                parts.push(format!(
                    "SELECT {sums}, '{kind}', {column}, '' FROM daily WHERE day >= {later}($1, {UNTIL}) AND day <= $2 \
                     GROUP BY {column}"
                ));
            }
        } else {
            let mut rows = format!("daily WHERE {days}");
            for (number, (condition, _)) in (3..).zip(conditions) {
                rows.push_str(&format!(" AND {condition}${number})"));
            }
            parts.push(format!(
                "SELECT {sums}, 'day', day, '' FROM {rows} GROUP BY day"
            ));
            parts.push(format!(
                "SELECT {sums}, 'pair', key_name, model FROM {rows} GROUP BY key_name, model"
            ));
        }
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
        for (_, value) in filter.conditions() {
            rows = rows.bind(value.clone());
        }
        let mut report = UsageReport::default();
        for row in rows.fetch_all(&self.pool).await? {
            report.add(&row)?;
        }
        Ok(report)
    }
}

//! What alerts watch: how much is spent of each cap, and what was told of it.

use std::collections::HashMap;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::alerts::{AlertSubject, decode_percents};
use super::database::Store;
use super::error::StoreError;
use super::spending::{EVER, Periods, decode_money};
use crate::config::Reset;
use crate::model::Money;

/// An alert whose key or account has a cap.
#[derive(Debug, Clone)]
pub struct WatchedAlert {
    pub id: String,
    pub subject: AlertSubject,
    /// The name of the account.
    pub account: String,
    /// The name of the key.
    pub key: Option<String>,
    /// Thresholds in percent, the lowest first.
    pub percents: Vec<u8>,
    pub cap: Money,
    pub reset: Reset,
    /// In the present period.
    pub spent: Money,
    /// The present period: `2026-11-15`, `2026-11`, or empty for a cap that does not reset.
    pub period: String,
    pub fired: FiredThreshold,
}

/// The highest threshold that was told of, and the period of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredThreshold {
    pub period: String,
    pub percent: u8,
}

impl Store {
    /// Tells whether there is any alert.
    pub async fn has_alerts(&self) -> Result<bool, StoreError> {
        let one = sqlx::query("SELECT id FROM alerts LIMIT 1");
        Ok(one.fetch_optional(&self.pool).await?.is_some())
    }

    /// All alerts with a cap to watch, with what is recorded as spent of it. The work grows with the alerts, not with the keys
    /// that have none.
    pub async fn watched_alerts(&self, now: Timestamp) -> Result<Vec<WatchedAlert>, StoreError> {
        let periods = Periods::of(now.as_millisecond());
        let all = "SELECT alerts.id, key_id, alerts.account, owner.name, keys.name, percents, fired_period, fired_percent, \
             CASE WHEN key_id IS NULL THEN owner.account_cap ELSE keys.spending_cap END, \
             CASE WHEN key_id IS NULL THEN owner.account_reset ELSE keys.reset END \
             FROM alerts LEFT JOIN keys ON keys.id = alerts.key_id \
             JOIN accounts owner ON owner.id = COALESCE(alerts.account, keys.account) WHERE keys.revoked IS NULL";
        let rows = sqlx::query(all).fetch_all(&self.pool).await?;
        let mut watched = Vec::new();
        for row in &rows {
            match decode(row, &periods) {
                Ok(alert) => watched.extend(alert),
                // One that cannot be read does not stop the others.
                Err(StoreError::Corrupt(what)) => {
                    let id: String = row.try_get(0)?;
                    log::error!("alert {id}: the store has a malformed {what}");
                }
                Err(error) => return Err(error),
            }
        }
        if watched.is_empty() {
            return Ok(watched);
        }
        let spent = self.watched_spending(&periods).await?;
        for alert in &mut watched {
            let (AlertSubject::Key(id) | AlertSubject::Account(id)) = &alert.subject;
            alert.spent = spent.get(id).copied().unwrap_or_default();
        }
        Ok(watched)
    }

    /// What is spent of the caps of keys and accounts that have alerts, by their ids.
    async fn watched_spending(
        &self,
        periods: &Periods,
    ) -> Result<HashMap<String, Money>, StoreError> {
        let of_keys = "SELECT watched.key_id, amount FROM \
             (SELECT DISTINCT key_id FROM alerts WHERE key_id IS NOT NULL) watched \
             JOIN keys ON keys.id = watched.key_id JOIN spending ON spending.key_id = keys.id AND spending.period = \
             CASE keys.reset WHEN 'daily' THEN $1 WHEN 'monthly' THEN $2 ELSE $3 END WHERE keys.revoked IS NULL";
        let of_accounts = "SELECT owner.id, amount FROM \
             (SELECT DISTINCT account FROM alerts WHERE account IS NOT NULL) watched \
             JOIN accounts owner ON owner.id = watched.account JOIN keys ON keys.account = owner.id \
             JOIN spending ON spending.key_id = keys.id AND spending.period = \
             CASE owner.account_reset WHEN 'daily' THEN $1 WHEN 'monthly' THEN $2 ELSE $3 END";
        let mut spent: HashMap<String, Money> = HashMap::new();
        for query in [of_keys, of_accounts] {
            let rows = sqlx::query(query)
                .bind(periods.day.clone())
                .bind(periods.month.clone())
                .bind(EVER)
                .fetch_all(&self.pool)
                .await?;
            for row in rows {
                *spent.entry(row.try_get(0)?).or_default() += decode_money(row.try_get(1)?)?;
            }
        }
        Ok(spent)
    }

    /// Notes what an alert has told of, with the message that is to be sent; without one, nothing is. Of several gateways that
    /// have seen the same state only one does it: returns whether it was this one.
    pub async fn fire_alert(
        &self,
        id: &str,
        seen: &FiredThreshold,
        fired: &FiredThreshold,
        message: Option<(&str, i64)>,
    ) -> Result<bool, StoreError> {
        let state = "UPDATE alerts SET fired_period = $1, fired_percent = $2 \
             WHERE id = $3 AND fired_period = $4 AND fired_percent = $5";
        let with_message = "UPDATE alerts SET fired_period = $1, fired_percent = $2, message = $6, due = $7, attempts = 0 \
             WHERE id = $3 AND fired_period = $4 AND fired_percent = $5";
        let put = sqlx::query(match message {
            Some(_) => with_message,
            None => state,
        });
        let mut put = put
            .bind(fired.period.clone())
            .bind(i64::from(fired.percent))
            .bind(id.to_owned())
            .bind(seen.period.clone())
            .bind(i64::from(seen.percent));
        if let Some((text, due)) = message {
            put = put.bind(text.to_owned()).bind(due);
        }
        let done = put.execute(&self.pool).await?;
        Ok(done.rows_affected() == 1)
    }
}

/// `None`: there is no cap, or one of nothing.
fn decode(row: &AnyRow, periods: &Periods) -> Result<Option<WatchedAlert>, StoreError> {
    let cap: Option<String> = row.try_get(8)?;
    let cap = cap.map(decode_money).transpose()?;
    let Some(cap) = cap.filter(|cap| !cap.is_zero()) else {
        return Ok(None);
    };
    let percents: String = row.try_get(5)?;
    let fired: i64 = row.try_get(7)?;
    let reset: String = row.try_get(9)?;
    let reset = Reset::from_word(&reset).ok_or(StoreError::Corrupt("reset"))?;
    Ok(Some(WatchedAlert {
        id: row.try_get(0)?,
        subject: AlertSubject::decode(row.try_get(1)?, row.try_get(2)?)?,
        account: row.try_get(3)?,
        key: row.try_get(4)?,
        percents: decode_percents(&percents)?,
        cap,
        reset,
        spent: Money::ZERO,
        period: match reset {
            Reset::Daily => periods.day.clone(),
            Reset::Monthly => periods.month.clone(),
            Reset::Never => EVER.to_owned(),
        },
        fired: FiredThreshold {
            period: row.try_get(6)?,
            percent: u8::try_from(fired).unwrap_or_default(),
        },
    }))
}

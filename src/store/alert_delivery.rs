//! Messages of alerts that wait to be sent: each attempt is one gateway's.

use sqlx::Row as _;

use super::database::Store;
use super::error::StoreError;

/// A message that can be tried now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueAlert {
    pub id: String,
    /// Since when; it changes with each attempt.
    pub due: i64,
}

impl Store {
    /// Messages that are to be tried now, those that wait longest first.
    pub async fn due_alerts(&self, now: i64, limit: usize) -> Result<Vec<DueAlert>, StoreError> {
        let some =
            "SELECT id, due FROM alerts WHERE due IS NOT NULL AND due <= $1 ORDER BY due LIMIT $2";
        let rows = sqlx::query(some)
            .bind(now)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.pool)
            .await?;
        let due = rows.iter().map(|row| {
            Ok(DueAlert {
                id: row.try_get(0)?,
                due: row.try_get(1)?,
            })
        });
        due.collect()
    }

    /// Takes an attempt, which is over at `until`: if this process is gone by then, another one tries again. Returns the message
    /// and which attempt it is; `None`: another process has taken it.
    pub async fn claim_alert(
        &self,
        alert: &DueAlert,
        until: i64,
    ) -> Result<Option<(String, i64)>, StoreError> {
        let claim = "UPDATE alerts SET due = $1, attempts = attempts + 1 WHERE id = $2 AND due = $3 \
             RETURNING message, attempts";
        let claimed = sqlx::query(claim)
            .bind(until)
            .bind(alert.id.clone())
            .bind(alert.due)
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = claimed else {
            return Ok(None);
        };
        let message: Option<String> = row.try_get(0)?;
        Ok(Some((message.unwrap_or_default(), row.try_get(1)?)))
    }

    /// Notes what became of the attempt that ends at `until`, and when there is a further one. A newer message stays as it is.
    pub async fn settle_alert(
        &self,
        id: &str,
        until: i64,
        outcome: (i64, u8, &str),
        next: Option<i64>,
    ) -> Result<(), StoreError> {
        let settle = "UPDATE alerts SET due = $1, last_at = $2, last_percent = $3, last_outcome = $4 \
             WHERE id = $5 AND due = $6";
        self.end_attempt(settle, id, until, outcome, next).await
    }

    /// Gives an attempt back that could not be made, until `next`: it does not count.
    pub async fn postpone_alert(
        &self,
        id: &str,
        until: i64,
        outcome: (i64, u8, &str),
        next: i64,
    ) -> Result<(), StoreError> {
        let postpone = "UPDATE alerts SET due = $1, last_at = $2, last_percent = $3, last_outcome = $4, \
             attempts = attempts - 1 WHERE id = $5 AND due = $6";
        self.end_attempt(postpone, id, until, outcome, Some(next))
            .await
    }

    async fn end_attempt(
        &self,
        end: &'static str,
        id: &str,
        until: i64,
        (at, percent, outcome): (i64, u8, &str),
        next: Option<i64>,
    ) -> Result<(), StoreError> {
        sqlx::query(end)
            .bind(next)
            .bind(at)
            .bind(i64::from(percent))
            .bind(outcome.to_owned())
            .bind(id.to_owned())
            .bind(until)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Gives up a message that cannot be read, and whose attempt ends at `until`.
    pub async fn give_up_alert(&self, id: &str, until: i64) -> Result<(), StoreError> {
        sqlx::query("UPDATE alerts SET due = NULL WHERE id = $1 AND due = $2")
            .bind(id.to_owned())
            .bind(until)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Notes what became of a test message.
    pub async fn note_alert_test(
        &self,
        id: &str,
        at: i64,
        outcome: &str,
    ) -> Result<(), StoreError> {
        let note =
            "UPDATE alerts SET last_at = $1, last_percent = NULL, last_outcome = $2 WHERE id = $3";
        sqlx::query(note)
            .bind(at)
            .bind(outcome.to_owned())
            .bind(id.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}

//! Slices of spending caps that processes have set aside, so that many together keep within a cap.

use jiff::Timestamp;
use sqlx::{Any, Row as _, Transaction};

use super::spending::{EVER, Periods, read_money};
use super::{Store, StoreError};
use crate::config::Reset;
use crate::model::{LeaseGrant, LeaseRequest, Money};

/// How long a slice is set aside for a process that gives no sign of life, in milliseconds.
pub const LEASED_FOR: i64 = 30_000;

/// One process with a journal of its own, as other processes know it.
#[derive(Debug, Clone)]
pub struct LeaseHolder {
    pub id: String,
    pub journal: String,
    /// Receipts from before are not its own.
    pub began: Timestamp,
}

impl LeaseHolder {
    pub(super) fn is_own(&self, at: i64) -> bool {
        at >= self.began.as_millisecond()
    }
}

/// What one key needs.
#[derive(Debug, Clone)]
pub struct KeyLeaseRequest {
    pub key: String,
    pub reset: Reset,
    pub need: LeaseRequest,
}

impl Store {
    /// The same store, with leases in the name of a process.
    pub fn with_holder(self, holder: LeaseHolder) -> Store {
        Store {
            holder: Some(holder.into()),
            ..self
        }
    }

    /// Sets aside what is needed of several caps, as far as it is there; the answers are in the order of the questions.
    pub async fn lease(
        &self,
        asks: &[KeyLeaseRequest],
        now: Timestamp,
    ) -> Result<Vec<LeaseGrant>, StoreError> {
        let holder = self.holder()?;
        let mut writing = self.write().await?;
        let mut all = Vec::with_capacity(asks.len());
        for ask in asks {
            all.push(lease(&mut writing, holder, ask, now.as_millisecond()).await?);
        }
        writing.commit().await?;
        Ok(all)
    }

    /// A sign of life; how many leases it was for. Those that nobody gave one for are gone.
    pub async fn renew_leases(&self, now: Timestamp) -> Result<u64, StoreError> {
        let holder = self.holder()?;
        let now = now.as_millisecond();
        let mut writing = self.write().await?;
        sqlx::query("DELETE FROM leases WHERE expires <= $1")
            .bind(now)
            .execute(&mut *writing)
            .await?;
        let renewed = sqlx::query("UPDATE leases SET expires = $1 WHERE holder = $2")
            .bind(now.saturating_add(LEASED_FOR))
            .bind(holder.id.clone())
            .execute(&mut *writing)
            .await?;
        writing.commit().await?;
        Ok(renewed.rows_affected())
    }

    /// Whoever had this process's journal before is gone, and all it has spent is written down.
    pub async fn succeed(&self) -> Result<(), StoreError> {
        let holder = self.holder()?;
        sqlx::query("DELETE FROM leases WHERE journal = $1 AND holder <> $2")
            .bind(holder.journal.clone())
            .bind(holder.id.clone())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    fn holder(&self) -> Result<&LeaseHolder, StoreError> {
        self.holder.as_deref().ok_or(StoreError::Corrupt("holder"))
    }
}

async fn lease(
    writing: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    ask: &KeyLeaseRequest,
    now: i64,
) -> Result<LeaseGrant, StoreError> {
    let Periods { day, month } = Periods::of(now);
    let period = match ask.reset {
        Reset::Never => EVER.to_owned(),
        Reset::Monthly => month,
        Reset::Daily => day,
    };
    let spent = "SELECT amount FROM spending WHERE key_name = $1 AND period = $2";
    let spent = sqlx::query(spent)
        .bind(ask.key.clone())
        .bind(period.clone())
        .fetch_optional(&mut **writing)
        .await?;
    let spent = match spent {
        Some(row) => read_money(row.try_get(0)?)?,
        None => Money::ZERO,
    };
    let others = "SELECT amount FROM leases WHERE key_name = $1 AND period = $2 AND holder <> $3 AND expires > $4";
    let others = sqlx::query(others)
        .bind(ask.key.clone())
        .bind(period.clone())
        .bind(holder.id.clone())
        .bind(now)
        .fetch_all(&mut **writing)
        .await?;
    let mut elsewhere = Money::ZERO;
    for row in others {
        elsewhere += read_money(row.try_get(0)?)?;
    }
    let given = ask.need.meet(spent, elsewhere);
    put(writing, holder, &ask.key, &period, given.amount, now).await?;
    Ok(given)
}

async fn put(
    writing: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    key: &str,
    period: &str,
    amount: Money,
    now: i64,
) -> Result<(), StoreError> {
    if amount.is_zero() {
        sqlx::query("DELETE FROM leases WHERE key_name = $1 AND holder = $2")
            .bind(key.to_owned())
            .bind(holder.id.clone())
            .execute(&mut **writing)
            .await?;
        return Ok(());
    }
    let put = "INSERT INTO leases (key_name, holder, journal, period, amount, expires) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (key_name, holder) DO UPDATE SET \
         period = excluded.period, amount = excluded.amount, expires = excluded.expires";
    sqlx::query(put)
        .bind(key.to_owned())
        .bind(holder.id.clone())
        .bind(holder.journal.clone())
        .bind(period.to_owned())
        .bind(amount.to_string())
        .bind(now.saturating_add(LEASED_FOR))
        .execute(&mut **writing)
        .await?;
    Ok(())
}

/// What a holder has spent is written down: its lease need not cover that any more, if it is of one
/// of these periods.
pub(super) async fn shrink(
    writing: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    key: &str,
    periods: &Periods,
    by: Money,
) -> Result<(), StoreError> {
    let held =
        "SELECT amount FROM leases WHERE key_name = $1 AND holder = $2 AND period IN ($3, $4, $5)";
    let held = sqlx::query(held)
        .bind(key.to_owned())
        .bind(holder.id.clone())
        .bind(periods.day.clone())
        .bind(periods.month.clone())
        .bind(EVER.to_owned())
        .fetch_optional(&mut **writing)
        .await?;
    let Some(row) = held else {
        return Ok(());
    };
    let rest = read_money(row.try_get(0)?)?.saturating_sub(by);
    // Nothing may be left of it; it is still the holder's to take away.
    sqlx::query("UPDATE leases SET amount = $1 WHERE key_name = $2 AND holder = $3")
        .bind(rest.to_string())
        .bind(key.to_owned())
        .bind(holder.id.clone())
        .execute(&mut **writing)
        .await?;
    Ok(())
}

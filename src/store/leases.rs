//! Leases: the parts of spending caps that processes have set aside, so that all of them together keep within a cap.

use jiff::Timestamp;
use sqlx::{Any, Row as _, Transaction};

use super::database::Store;
use super::error::StoreError;
use super::lease_holder::LeaseHolder;
use super::spending::{EVER, Periods, decode_money};
use crate::config::Reset;
use crate::model::{LeaseGrant, LeaseRequest, Money};

/// Time after which a lease expires that is not renewed, in milliseconds.
pub const LEASED_FOR: i64 = 30_000;

/// The lease that one key needs.
#[derive(Debug, Clone)]
pub struct KeyLeaseRequest {
    /// The id of the key.
    pub key: String,
    pub reset: Reset,
    pub lease: LeaseRequest,
}

impl Store {
    /// The same store, with leases in the name of `holder`.
    pub fn with_holder(self, holder: LeaseHolder) -> Store {
        Store {
            holder: Some(holder.into()),
            ..self
        }
    }

    /// Grants leases of several caps, as far as they have money left; the grants are in the order of the requests.
    pub async fn lease(
        &self,
        requests: &[KeyLeaseRequest],
        now: Timestamp,
    ) -> Result<Vec<LeaseGrant>, StoreError> {
        let holder = self.holder()?;
        let mut transaction = self.begin_write().await?;
        let mut all = Vec::with_capacity(requests.len());
        for request in requests {
            all.push(lease(&mut transaction, holder, request, now.as_millisecond()).await?);
        }
        transaction.commit().await?;
        Ok(all)
    }

    /// Renews the leases of this holder and returns how many there are; expired leases of all holders are deleted.
    pub async fn renew_leases(&self, now: Timestamp) -> Result<u64, StoreError> {
        let holder = self.holder()?;
        let now = now.as_millisecond();
        let mut transaction = self.begin_write().await?;
        sqlx::query("DELETE FROM leases WHERE expires <= $1")
            .bind(now)
            .execute(&mut *transaction)
            .await?;
        let renewed = sqlx::query("UPDATE leases SET expires = $1 WHERE holder = $2")
            .bind(now.saturating_add(LEASED_FOR))
            .bind(holder.id.clone())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(renewed.rows_affected())
    }

    /// Deletes the leases of an earlier process with the same journal, once its spending is recorded.
    pub async fn take_over(&self) -> Result<(), StoreError> {
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
    transaction: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    request: &KeyLeaseRequest,
    now: i64,
) -> Result<LeaseGrant, StoreError> {
    let Periods { day, month } = Periods::of(now);
    let period = match request.reset {
        Reset::Never => EVER.to_owned(),
        Reset::Monthly => month,
        Reset::Daily => day,
    };
    let spent = "SELECT amount FROM spending WHERE key_id = $1 AND period = $2";
    let spent = sqlx::query(spent)
        .bind(request.key.clone())
        .bind(period.clone())
        .fetch_optional(&mut **transaction)
        .await?;
    let spent = match spent {
        Some(row) => decode_money(row.try_get(0)?)?,
        None => Money::ZERO,
    };
    let others = "SELECT amount FROM leases WHERE key_id = $1 AND period = $2 AND holder <> $3 AND expires > $4";
    let others = sqlx::query(others)
        .bind(request.key.clone())
        .bind(period.clone())
        .bind(holder.id.clone())
        .bind(now)
        .fetch_all(&mut **transaction)
        .await?;
    let mut leased_elsewhere = Money::ZERO;
    for row in others {
        leased_elsewhere += decode_money(row.try_get(0)?)?;
    }
    let grant = request.lease.grant(spent, leased_elsewhere);
    put(
        transaction,
        holder,
        &request.key,
        &period,
        grant.amount,
        now,
    )
    .await?;
    Ok(grant)
}

async fn put(
    transaction: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    key: &str,
    period: &str,
    amount: Money,
    now: i64,
) -> Result<(), StoreError> {
    if amount.is_zero() {
        sqlx::query("DELETE FROM leases WHERE key_id = $1 AND holder = $2")
            .bind(key.to_owned())
            .bind(holder.id.clone())
            .execute(&mut **transaction)
            .await?;
        return Ok(());
    }
    let put = "INSERT INTO leases (key_id, holder, journal, period, amount, expires) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (key_id, holder) DO UPDATE SET \
         period = excluded.period, amount = excluded.amount, expires = excluded.expires";
    sqlx::query(put)
        .bind(key.to_owned())
        .bind(holder.id.clone())
        .bind(holder.journal.clone())
        .bind(period.to_owned())
        .bind(amount.to_string())
        .bind(now.saturating_add(LEASED_FOR))
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Shrinks a holder's lease by what is now recorded as spent, if the lease is of one of these periods.
pub(super) async fn shrink(
    transaction: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    key: &str,
    periods: &Periods,
    by: Money,
) -> Result<(), StoreError> {
    let held =
        "SELECT amount FROM leases WHERE key_id = $1 AND holder = $2 AND period IN ($3, $4, $5)";
    let held = sqlx::query(held)
        .bind(key.to_owned())
        .bind(holder.id.clone())
        .bind(periods.day.clone())
        .bind(periods.month.clone())
        .bind(EVER.to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    let Some(row) = held else {
        return Ok(());
    };
    let rest = decode_money(row.try_get(0)?)?.saturating_sub(by);
    // An empty lease stays: only its holder deletes it.
    sqlx::query("UPDATE leases SET amount = $1 WHERE key_id = $2 AND holder = $3")
        .bind(rest.to_string())
        .bind(key.to_owned())
        .bind(holder.id.clone())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

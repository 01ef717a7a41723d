//! Leases: the parts of spending caps that processes have set aside, so that all of them together keep within a cap.

use jiff::Timestamp;
use sqlx::{Any, Row as _, Transaction};

use super::database::Store;
use super::error::StoreError;
use super::lease_holder::LeaseHolder;
use super::spending::{EVER, Periods, decode_money};
use crate::config::Reset;
use crate::model::{CapKind, LeaseGrant, LeaseRequest, Money};

/// Time after which a lease expires that is not renewed, in milliseconds.
pub const LEASED_FOR: i64 = 30_000;

/// The lease that one process needs of a cap.
#[derive(Debug, Clone)]
pub struct CapLeaseRequest {
    pub kind: CapKind,
    /// The id of the key or account.
    pub id: String,
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
        requests: &[CapLeaseRequest],
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
    request: &CapLeaseRequest,
    now: i64,
) -> Result<LeaseGrant, StoreError> {
    let Periods { day, month } = Periods::of(now);
    let period = match request.reset {
        Reset::Never => EVER.to_owned(),
        Reset::Monthly => month,
        Reset::Daily => day,
    };
    let spent = match request.kind {
        CapKind::Key => "SELECT amount FROM spending WHERE key_id = $1 AND period = $2",
        CapKind::Account => {
            "SELECT amount FROM spending WHERE key_id IN (SELECT id FROM keys WHERE account = $1) AND period = $2"
        }
    };
    let spent = sum(transaction, spent, [request.id.clone(), period.clone()]).await?;
    let others = "SELECT amount FROM leases WHERE key_id = $1 AND period = $2 AND holder <> $3 AND expires > $4";
    let others = sqlx::query(others)
        .bind(request.id.clone())
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
    put(transaction, holder, &request.id, &period, grant.amount, now).await?;
    Ok(grant)
}

/// The sum of the amounts that a query finds.
async fn sum(
    transaction: &mut Transaction<'static, Any>,
    query: &'static str,
    [id, period]: [String; 2],
) -> Result<Money, StoreError> {
    let rows = sqlx::query(query).bind(id).bind(period);
    let mut sum = Money::ZERO;
    for row in rows.fetch_all(&mut **transaction).await? {
        sum += decode_money(row.try_get(0)?)?;
    }
    Ok(sum)
}

async fn put(
    transaction: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    id: &str,
    period: &str,
    amount: Money,
    now: i64,
) -> Result<(), StoreError> {
    if amount.is_zero() {
        sqlx::query("DELETE FROM leases WHERE key_id = $1 AND holder = $2")
            .bind(id.to_owned())
            .bind(holder.id.clone())
            .execute(&mut **transaction)
            .await?;
        return Ok(());
    }
    let put = "INSERT INTO leases (key_id, holder, journal, period, amount, expires) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (key_id, holder) DO UPDATE SET \
         period = excluded.period, amount = excluded.amount, expires = excluded.expires";
    sqlx::query(put)
        .bind(id.to_owned())
        .bind(holder.id.clone())
        .bind(holder.journal.clone())
        .bind(period.to_owned())
        .bind(amount.to_string())
        .bind(now.saturating_add(LEASED_FOR))
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Shrinks a holder's leases of a key's cap and of its account's by what is now recorded as spent, as far as they are of these
/// periods.
pub(super) async fn shrink(
    transaction: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    key: &str,
    periods: &Periods,
    by: Money,
) -> Result<(), StoreError> {
    let held = "SELECT key_id, amount FROM leases WHERE holder = $2 AND period IN ($3, $4, $5) \
         AND (key_id = $1 OR key_id = (SELECT account FROM keys WHERE id = $1))";
    let held = sqlx::query(held)
        .bind(key.to_owned())
        .bind(holder.id.clone())
        .bind(periods.day.clone())
        .bind(periods.month.clone())
        .bind(EVER.to_owned())
        .fetch_all(&mut **transaction)
        .await?;
    for row in held {
        let id: String = row.try_get(0)?;
        let rest = decode_money(row.try_get(1)?)?.saturating_sub(by);
        // An empty lease stays: only its holder deletes it.
        sqlx::query("UPDATE leases SET amount = $1 WHERE key_id = $2 AND holder = $3")
            .bind(rest.to_string())
            .bind(id)
            .bind(holder.id.clone())
            .execute(&mut **transaction)
            .await?;
    }
    Ok(())
}

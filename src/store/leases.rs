//! Leases: the parts of spending caps that processes have set aside, so that all of them together keep within a cap.

use std::collections::HashMap;

use jiff::Timestamp;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

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
        let granted = grant(&mut transaction, holder, requests, now.as_millisecond()).await?;
        transaction.commit().await?;
        Ok(granted)
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

/// Sums of amounts, by the ids of keys and accounts.
type Amounts = HashMap<String, Money>;

/// Grants all requests with a few queries: each is a round trip while other writers wait.
async fn grant(
    transaction: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    requests: &[CapLeaseRequest],
    now: i64,
) -> Result<Vec<LeaseGrant>, StoreError> {
    let of_kind = |kind: CapKind| {
        let requests = requests.iter().filter(move |request| request.kind == kind);
        requests.map(|request| (request.id.clone(), period(request.reset, now)))
    };
    let (keys, accounts): (Vec<_>, Vec<_>) = (
        of_kind(CapKind::Key).collect(),
        of_kind(CapKind::Account).collect(),
    );
    let by_key = "SELECT key_id, amount FROM spending WHERE (key_id, period) IN (VALUES PAIRS)";
    let by_account = "SELECT keys.account, amount FROM keys JOIN spending ON spending.key_id = keys.id \
         WHERE (keys.account, period) IN (VALUES PAIRS)";
    let elsewhere = "SELECT key_id, amount FROM leases WHERE (key_id, period) IN (VALUES PAIRS)";
    let mut spent = amounts(transaction, by_key, &keys, None).await?;
    spent.extend(amounts(transaction, by_account, &accounts, None).await?);
    let all: Vec<(String, String)> = keys.into_iter().chain(accounts).collect();
    let others = Some((holder, now));
    let leased_elsewhere = amounts(transaction, elsewhere, &all, others).await?;
    let of = |amounts: &Amounts, id: &str| amounts.get(id).copied().unwrap_or_default();
    let granted = requests.iter().map(|request| {
        let (spent, elsewhere) = (of(&spent, &request.id), of(&leased_elsewhere, &request.id));
        request.lease.grant(spent, elsewhere)
    });
    let granted: Vec<LeaseGrant> = granted.collect();
    put(transaction, holder, requests, &granted, now).await?;
    Ok(granted)
}

fn period(reset: Reset, now: i64) -> String {
    let Periods { day, month } = Periods::of(now);
    match reset {
        Reset::Never => EVER.to_owned(),
        Reset::Monthly => month,
        Reset::Daily => day,
    }
}

/// The sums of the amounts that a query finds for pairs of an id and a period. `except`: leases of this holder, and those that
/// are over.
async fn amounts(
    transaction: &mut Transaction<'static, Any>,
    query: &str,
    pairs: &[(String, String)],
    except: Option<(&LeaseHolder, i64)>,
) -> Result<Amounts, StoreError> {
    let mut sums = Amounts::new();
    if pairs.is_empty() {
        return Ok(sums);
    }
    let (places, next) = placeholders(pairs.len(), 2);
    let mut query = query.replace("PAIRS", &places);
    if except.is_some() {
        query += &format!(" AND holder <> ${next} AND expires > ${}", next + 1);
    }
    let mut query = sqlx::query(AssertSqlSafe(query));
    for (id, period) in pairs {
        query = query.bind(id.clone()).bind(period.clone());
    }
    if let Some((holder, now)) = except {
        query = query.bind(holder.id.clone()).bind(now);
    }
    for row in query.fetch_all(&mut **transaction).await? {
        *sums.entry(row.try_get(0)?).or_default() += decode_money(row.try_get(1)?)?;
    }
    Ok(sums)
}

/// `($1, $2), ($3, $4)` for rows of so many columns, and the number of the next parameter.
fn placeholders(rows: usize, columns: usize) -> (String, usize) {
    let row = |row: usize| {
        let first = row * columns + 1;
        let places: Vec<String> = (first..first + columns)
            .map(|place| format!("${place}"))
            .collect();
        format!("({})", places.join(", "))
    };
    let rows_text: Vec<String> = (0..rows).map(row).collect();
    (rows_text.join(", "), rows * columns + 1)
}

/// Writes what was granted; a lease of nothing is none.
async fn put(
    transaction: &mut Transaction<'static, Any>,
    holder: &LeaseHolder,
    requests: &[CapLeaseRequest],
    granted: &[LeaseGrant],
    now: i64,
) -> Result<(), StoreError> {
    let all = requests.iter().zip(granted);
    let (over, held): (Vec<_>, Vec<_>) = all.partition(|(_, grant)| grant.amount.is_zero());
    if !over.is_empty() {
        let (places, next) = placeholders(over.len(), 1);
        let delete = format!("DELETE FROM leases WHERE key_id IN ({places}) AND holder = ${next}");
        let mut query = sqlx::query(AssertSqlSafe(delete));
        for (request, _) in &over {
            query = query.bind(request.id.clone());
        }
        query
            .bind(holder.id.clone())
            .execute(&mut **transaction)
            .await?;
    }
    if held.is_empty() {
        return Ok(());
    }
    let (places, _) = placeholders(held.len(), 6);
    let put = format!(
        "INSERT INTO leases (key_id, holder, journal, period, amount, expires) VALUES {places} \
         ON CONFLICT (key_id, holder) DO UPDATE SET \
         period = excluded.period, amount = excluded.amount, expires = excluded.expires"
    );
    let mut query = sqlx::query(AssertSqlSafe(put));
    for (request, grant) in held {
        query = query
            .bind(request.id.clone())
            .bind(holder.id.clone())
            .bind(holder.journal.clone())
            .bind(period(request.reset, now))
            .bind(grant.amount.to_string())
            .bind(now.saturating_add(LEASED_FOR));
    }
    query.execute(&mut **transaction).await?;
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

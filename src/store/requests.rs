//! Usage records, read again: one of them, or those of some keys, the newest first.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::database::{Store, from_column};
use super::error::StoreError;
use super::spending::decode_money;
use crate::model::{Usage, UsageDetails, UsageRecord};

const COLUMNS: &str = "SELECT id, ended, key_id, key_name, model, upstream, format, stream, status, input, cached, \
     cache_written, output, thinking, audio_input, audio_output, image_output, images, estimated, cost, prices, priced_ms, \
     audio_ms, took_ms, first_ms, upstream_format, earlier, dropped, adjusted FROM usage";

/// Which requests are asked for.
#[derive(Debug, Clone)]
pub struct RequestFilter {
    /// The ids of keys; `None`: all.
    pub keys: Option<Vec<String>>,
    pub model: Option<String>,
    /// Only those with a status of 400 and more.
    pub is_failed: bool,
    /// Only those with an estimated usage.
    pub is_estimated: bool,
    /// In milliseconds since 1970; the end is not part of it.
    pub from: i64,
    pub until: i64,
    /// Only those that come behind this one.
    pub after: Option<RequestCursor>,
}

/// The place of a request in a list: by its end, then by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestCursor {
    pub ended: i64,
    pub id: String,
}

impl Store {
    /// The usage record of one request.
    pub async fn request(&self, id: &str) -> Result<Option<UsageRecord<'static>>, StoreError> {
        let one = format!("{COLUMNS} WHERE id = $1");
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(id.to_owned())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(from_row).transpose()
    }

    /// At most `limit` requests, the newest first.
    pub async fn requests(
        &self,
        filter: &RequestFilter,
        limit: usize,
    ) -> Result<Vec<UsageRecord<'static>>, StoreError> {
        let Some(keys) = &filter.keys else {
            return self.requests_of(filter, filter.from, None, limit).await;
        };
        // Key by key, as the index has them: one query of all would sort everything that they ever asked.
        let mut found: Vec<UsageRecord<'static>> = Vec::new();
        for key in keys {
            let oldest = found.last().filter(|_| found.len() == limit);
            let from = oldest.map_or(filter.from, |oldest| oldest.at);
            found.extend(self.requests_of(filter, from, Some(key), limit).await?);
            found.sort_by(|one, other| (other.at, &other.id).cmp(&(one.at, &one.id)));
            found.truncate(limit);
        }
        Ok(found)
    }

    async fn requests_of(
        &self,
        filter: &RequestFilter,
        from: i64,
        key: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UsageRecord<'static>>, StoreError> {
        let (ended, id) = match &filter.after {
            Some(after) => (after.ended, after.id.clone()),
            None => (filter.until, String::new()),
        };
        let until = filter.until.min(ended.saturating_add(1));
        // The conditions are written out where they are asked for: so the indexes of the few such requests are found.
        let given = |is_given: bool, condition: &'static str| match is_given {
            true => condition,
            false => "",
        };
        let failed = given(filter.is_failed, "AND status >= 400 ");
        let estimated = given(filter.is_estimated, "AND estimated > 0 ");
        let of_model = given(filter.model.is_some(), "AND model = $6 ");
        let of_key = match (key, &filter.model) {
            (None, _) => "",
            (Some(_), None) => "AND key_id = $6 ",
            (Some(_), Some(_)) => "AND key_id = $7 ",
        };
        let some = format!(
            "{COLUMNS} WHERE ended >= $1 AND ended < $2 AND (ended < $3 OR (ended = $3 AND id < $4)) \
             {failed}{estimated}{of_model}{of_key}ORDER BY ended DESC, id DESC LIMIT $5"
        );
        let mut query = sqlx::query(AssertSqlSafe(some))
            .bind(from)
            .bind(until)
            .bind(ended)
            .bind(id)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX));
        if let Some(model) = &filter.model {
            query = query.bind(model.clone());
        }
        if let Some(key) = key {
            query = query.bind(key.to_owned());
        }
        let rows = query.fetch_all(&self.pool).await?;
        rows.iter().map(from_row).collect()
    }

    /// The id and the name of each key of an account that has a name, also of those that are revoked; without an account or
    /// a name, of all accounts or names.
    pub async fn key_names(
        &self,
        account: Option<&str>,
        name: Option<&str>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let all = "SELECT keys.id, keys.name FROM keys JOIN accounts ON accounts.id = keys.account \
             WHERE ($1 = '' OR accounts.name = $1) AND ($2 = '' OR keys.name = $2) ORDER BY keys.name, keys.created";
        let rows = sqlx::query(all)
            .bind(account.unwrap_or_default().to_owned())
            .bind(name.unwrap_or_default().to_owned())
            .fetch_all(&self.pool)
            .await?;
        let rows = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        rows.collect()
    }
}

fn from_row(row: &AnyRow) -> Result<UsageRecord<'static>, StoreError> {
    let text = |column: usize| row.try_get::<String, _>(column).map(Into::into);
    let count = |column: usize| row.try_get(column).map(from_column);
    let is_set = |column: usize| row.try_get::<i64, _>(column).map(|number| number != 0);
    let status: i64 = row.try_get(8)?;
    Ok(UsageRecord {
        id: text(0)?,
        at: row.try_get(1)?,
        key_id: text(2)?,
        key: text(3)?,
        model: text(4)?,
        upstream: text(5)?,
        format: text(6)?,
        stream: is_set(7)?,
        status: u16::try_from(status).map_err(|_| StoreError::Corrupt("status"))?,
        usage: Usage {
            input: count(9)?,
            cached: count(10)?,
            cache_written: count(11)?,
            output: count(12)?,
            thinking: count(13)?,
            audio_input: count(14)?,
            audio_output: count(15)?,
            image_output: count(16)?,
            ..Usage::default()
        },
        images: count(17)?,
        estimated: is_set(18)?,
        cost: decode_money(row.try_get(19)?)?,
        details: UsageDetails {
            prices: text(20)?,
            priced: count(21)?,
            audio: count(22)?,
            took: count(23)?,
            first_byte: count(24)?,
            upstream_format: text(25)?,
            earlier: text(26)?,
            dropped: text(27)?,
            adjusted: text(28)?,
        },
    })
}

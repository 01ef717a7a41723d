//! Stored responses, each with its input, for conversations that are continued.

use futures_util::TryStreamExt as _;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row as _};

use super::database::{Store, from_column, milliseconds_now, to_column};
use super::error::StoreError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The id of the response before it.
    pub previous: Option<String>,
    pub input: Vec<u8>,
    pub input_items: u64,
    pub reply: Vec<u8>,
}

/// What a row counts beside its content.
const ROW_BYTES: usize = 256;

/// How many marks one statement stores.
pub const MARK_BATCH: usize = 256;

/// How many bytes of its key's share so many marks take.
pub const fn mark_bytes(count: usize) -> usize {
    count.saturating_mul(ROW_BYTES)
}

impl StoredResponse {
    /// How many bytes of its key's share it takes.
    pub fn bytes(&self) -> usize {
        self.input.len() + self.reply.len() + ROW_BYTES
    }
}

impl Store {
    /// Stores a response, and extends the expiry of all responses before it.
    pub async fn insert_response(
        &self,
        key: &str,
        id: &str,
        reply: StoredResponse,
        expires: i64,
    ) -> Result<(), StoreError> {
        self.check_free_disk()?;
        let put = "INSERT INTO responses (key_id, id, previous, input, input_items, reply, expires, bytes) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (key_id, id) DO UPDATE SET \
             previous = excluded.previous, input = excluded.input, input_items = excluded.input_items, \
             reply = excluded.reply, expires = excluded.expires, bytes = excluded.bytes";
        let bytes = to_column(reply.bytes() as u64);
        let previous = reply.previous.clone();
        sqlx::query(put)
            .bind(key.to_owned())
            .bind(id.to_owned())
            .bind(reply.previous)
            .bind(reply.input)
            .bind(to_column(reply.input_items))
            .bind(reply.reply)
            .bind(expires)
            .bind(bytes)
            .execute(&self.pool)
            .await?;
        if let Some(previous) = previous {
            let touch = "WITH RECURSIVE thread (id) AS (SELECT CAST($2 AS TEXT) UNION \
                 SELECT responses.previous FROM responses JOIN thread ON responses.id = thread.id \
                 WHERE responses.key_id = $1 AND responses.previous IS NOT NULL) \
                 UPDATE responses SET expires = $3 \
                 WHERE key_id = $1 AND id IN (SELECT id FROM thread) AND expires < $3";
            sqlx::query(touch)
                .bind(key.to_owned())
                .bind(previous)
                .bind(expires)
                .execute(&self.pool)
                .await?;
        }
        Ok(())
    }

    /// Stores marks that a key was given these ids, each of them once. `origin` says by whom: it stands where responses have their
    /// input.
    pub async fn insert_marks(
        &self,
        key: &str,
        ids: &[String],
        origin: &[u8],
        expires: i64,
    ) -> Result<(), StoreError> {
        self.check_free_disk()?;
        let rows = (6..ids.len() + 6).map(|place| format!("($1, ${place}, $5, 0, $2, $3, $4)"));
        let rows: Vec<String> = rows.collect();
        let put = format!(
            "INSERT INTO responses (key_id, id, input, input_items, reply, expires, bytes) VALUES {} \
             ON CONFLICT (key_id, id) DO UPDATE SET expires = excluded.expires, \
             input = CASE WHEN length(responses.reply) = 0 THEN excluded.input ELSE responses.input END",
            rows.join(", ")
        );
        // The places alone are written into it, no value.
        let mut query = sqlx::query(AssertSqlSafe(put))
            .bind(key.to_owned())
            .bind(Vec::<u8>::new())
            .bind(expires)
            .bind(to_column(ROW_BYTES as u64))
            .bind(origin.to_vec());
        for id in ids {
            query = query.bind(id.clone());
        }
        query.execute(&self.pool).await?;
        Ok(())
    }

    /// How many bytes the responses of a key take.
    pub async fn response_bytes(&self, key: &str) -> Result<u64, StoreError> {
        let sum = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM responses WHERE key_id = $1";
        let row = sqlx::query(sum)
            .bind(key.to_owned())
            .fetch_one(&self.pool)
            .await?;
        Ok(from_column(row.try_get(0)?))
    }

    /// Deletes those responses of a key that expire first, until the others take no more than `bytes`.
    pub async fn trim_responses(&self, key: &str, bytes: u64) -> Result<(), StoreError> {
        let trim = "DELETE FROM responses WHERE key_id = $1 AND id IN (SELECT id FROM \
             (SELECT id, SUM(bytes) OVER (ORDER BY expires DESC, id DESC) AS newer FROM responses \
             WHERE key_id = $1) AS sums WHERE newer > CAST($2 AS BIGINT))";
        sqlx::query(trim)
            .bind(key.to_owned())
            .bind(to_column(bytes))
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// The responses with these ids, until they are longer than `limit` bytes together.
    pub async fn responses(
        &self,
        key: &str,
        ids: &[String],
        limit: usize,
    ) -> Result<Vec<(String, StoredResponse)>, StoreError> {
        let places: Vec<String> = (3..ids.len() + 3)
            .map(|place| format!("${place}"))
            .collect();
        let some = format!(
            "SELECT id, previous, input, input_items, reply FROM responses \
             WHERE key_id = $1 AND expires > $2 AND id IN ({})",
            places.join(", ")
        );
        // The places alone are written into it, no value.
        let mut query = sqlx::query(AssertSqlSafe(some))
            .bind(key.to_owned())
            .bind(milliseconds_now());
        for id in ids {
            query = query.bind(id.clone());
        }
        self.until_too_long(query, limit).await
    }

    pub async fn response(
        &self,
        key: &str,
        id: &str,
    ) -> Result<Option<StoredResponse>, StoreError> {
        let found = self.responses(key, &[id.to_owned()], usize::MAX).await?;
        Ok(found.into_iter().next().map(|(_, response)| response))
    }

    /// A response and those before it, until they are longer than `limit` bytes together.
    pub async fn thread(
        &self,
        key: &str,
        id: &str,
        limit: usize,
    ) -> Result<Vec<(String, StoredResponse)>, StoreError> {
        let thread = "WITH RECURSIVE thread (id) AS (SELECT CAST($2 AS TEXT) UNION \
             SELECT responses.previous FROM responses JOIN thread ON responses.id = thread.id \
             WHERE responses.key_id = $1 AND responses.previous IS NOT NULL) \
             SELECT id, previous, input, input_items, reply FROM responses \
             WHERE key_id = $1 AND expires > $3 AND id IN (SELECT id FROM thread)";
        let query = sqlx::query(thread)
            .bind(key.to_owned())
            .bind(id.to_owned())
            .bind(milliseconds_now());
        self.until_too_long(query, limit).await
    }

    async fn until_too_long(
        &self,
        query: Query<'_, Any, AnyArguments>,
        limit: usize,
    ) -> Result<Vec<(String, StoredResponse)>, StoreError> {
        let (mut rows, mut found, mut size) = (query.fetch(&self.pool), Vec::new(), 0);
        while size <= limit
            && let Some(row) = rows.try_next().await?
        {
            let response = StoredResponse {
                previous: row.try_get(1)?,
                input: row.try_get(2)?,
                input_items: from_column(row.try_get(3)?),
                reply: row.try_get(4)?,
            };
            size += response.bytes();
            found.push((row.try_get(0)?, response));
        }
        Ok(found)
    }

    pub async fn delete_response(&self, key: &str, id: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM responses WHERE key_id = $1 AND id = $2")
            .bind(key.to_owned())
            .bind(id.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Deletes expired responses, and returns how many.
    pub async fn delete_expired_responses(&self) -> Result<u64, StoreError> {
        let done = sqlx::query("DELETE FROM responses WHERE expires <= $1")
            .bind(milliseconds_now())
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected())
    }
}

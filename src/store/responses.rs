//! Stored responses, each with its input, for conversations that are continued.

use sqlx::Row as _;

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

    pub async fn response(
        &self,
        key: &str,
        id: &str,
    ) -> Result<Option<StoredResponse>, StoreError> {
        let one = "SELECT previous, input, input_items, reply FROM responses \
             WHERE key_id = $1 AND id = $2 AND expires > $3";
        let row = sqlx::query(one)
            .bind(key.to_owned())
            .bind(id.to_owned())
            .bind(milliseconds_now())
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        Ok(Some(StoredResponse {
            previous: row.try_get(0)?,
            input: row.try_get(1)?,
            input_items: from_column(row.try_get(2)?),
            reply: row.try_get(3)?,
        }))
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

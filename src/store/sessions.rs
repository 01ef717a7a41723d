//! Sessions of the console, known by the hashes of their tokens.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::audit::{self, AuditEntry};
use super::database::Store;
use super::error::StoreError;
use super::people::Person;
use super::secrets::hex;

const COLUMNS: &str = "SELECT sessions.id, sessions.created, sessions.seen, expires, stepped_up, remote, agent, person FROM sessions";

#[derive(Debug, Clone)]
pub struct StoredSession {
    /// Not the token, and not its hash: lists show it.
    pub id: String,
    /// All times in milliseconds since 1970.
    pub created: i64,
    pub seen: i64,
    pub expires: i64,
    /// When the password was entered last.
    pub stepped_up: i64,
    pub remote: String,
    pub agent: String,
}

/// A session that begins.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub sha256: [u8; 32],
    pub now: i64,
    pub expires: i64,
    /// When the person last proved who it is.
    pub stepped_up: i64,
    pub remote: String,
    pub agent: String,
}

/// How many sessions a person has at most.
const MAX_SESSIONS: i64 = 50;

impl Store {
    /// Begins a session of a person, who is noted as seen; one too many ends the oldest.
    pub async fn create_session(
        &self,
        person: &Person,
        session: &NewSession,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        let insert = "INSERT INTO sessions (sha256, id, person, epoch, created, seen, expires, stepped_up, remote, agent) \
             VALUES ($1, $2, $3, $4, $5, $5, $6, $9, $7, $8)";
        sqlx::query(insert)
            .bind(hex(&session.sha256))
            .bind(Uuid::now_v7().to_string())
            .bind(person.id.clone())
            .bind(person.epoch)
            .bind(session.now)
            .bind(session.expires)
            .bind(session.remote.clone())
            .bind(session.agent.clone())
            .bind(session.stepped_up)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("UPDATE people SET seen = $1 WHERE id = $2")
            .bind(session.now)
            .bind(person.id.clone())
            .execute(&mut *transaction)
            .await?;
        sqlx::query("DELETE FROM sessions WHERE expires <= $1")
            .bind(session.now)
            .execute(&mut *transaction)
            .await?;
        let oldest = "DELETE FROM sessions WHERE person = $1 AND id NOT IN \
             (SELECT id FROM sessions WHERE person = $1 ORDER BY created DESC, id DESC LIMIT $2)";
        sqlx::query(oldest)
            .bind(person.id.clone())
            .bind(MAX_SESSIONS)
            .execute(&mut *transaction)
            .await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// A session that is not over, and its person. `seen_after`: it was used since then.
    pub async fn session(
        &self,
        sha256: &[u8; 32],
        now: i64,
        seen_after: i64,
    ) -> Result<Option<(StoredSession, Person)>, StoreError> {
        let one = format!(
            "{COLUMNS} JOIN people ON people.id = sessions.person AND people.epoch = sessions.epoch \
             WHERE sha256 = $1 AND expires > $2 AND sessions.seen > $3 AND people.disabled IS NULL"
        );
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(hex(sha256))
            .bind(now)
            .bind(seen_after)
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let session = StoredSession::from_row(&row)?;
        let owner: String = row.try_get(7)?;
        let person = self.person(&owner).await?;
        Ok(person.map(|person| (session, person)))
    }

    pub async fn touch_session(&self, sha256: &[u8; 32], now: i64) -> Result<(), StoreError> {
        sqlx::query("UPDATE sessions SET seen = $1 WHERE sha256 = $2")
            .bind(now)
            .bind(hex(sha256))
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Notes that the password was entered again.
    pub async fn step_up_session(&self, id: &str, now: i64) -> Result<(), StoreError> {
        sqlx::query("UPDATE sessions SET stepped_up = $1 WHERE id = $2")
            .bind(now)
            .bind(id.to_owned())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// The sessions of a person, the last one first.
    pub async fn sessions(&self, person: &str, now: i64) -> Result<Vec<StoredSession>, StoreError> {
        let all = format!("{COLUMNS} WHERE person = $1 AND expires > $2 ORDER BY seen DESC");
        let rows = sqlx::query(AssertSqlSafe(all))
            .bind(person.to_owned())
            .bind(now)
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredSession::from_row).collect()
    }

    /// Ends a session of a person; returns whether there was one.
    pub async fn delete_session(
        &self,
        person: &str,
        id: &str,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin_write().await?;
        let done = sqlx::query("DELETE FROM sessions WHERE id = $1 AND person = $2")
            .bind(id.to_owned())
            .bind(person.to_owned())
            .execute(&mut *transaction)
            .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

impl StoredSession {
    fn from_row(row: &AnyRow) -> Result<StoredSession, StoreError> {
        Ok(StoredSession {
            id: row.try_get(0)?,
            created: row.try_get(1)?,
            seen: row.try_get(2)?,
            expires: row.try_get(3)?,
            stepped_up: row.try_get(4)?,
            remote: row.try_get(5)?,
            agent: row.try_get(6)?,
        })
    }
}

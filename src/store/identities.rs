//! Identities: who a person is for an identity provider.

use sqlx::{Any, Row as _, Transaction};
use uuid::Uuid;

use super::audit::{self, AuditEntry};
use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::people::Person;

/// A subject of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalIdentity {
    pub issuer: String,
    pub subject: String,
}

#[derive(Debug, Clone)]
pub struct StoredIdentity {
    pub id: String,
    pub issuer: String,
    pub email: Option<String>,
    /// In milliseconds since 1970.
    pub created: i64,
}

impl Store {
    /// The person that an identity belongs to.
    pub async fn person_of_identity(
        &self,
        identity: &ExternalIdentity,
    ) -> Result<Option<Person>, StoreError> {
        let row = sqlx::query("SELECT person FROM identities WHERE issuer = $1 AND subject = $2")
            .bind(identity.issuer.clone())
            .bind(identity.subject.clone())
            .fetch_optional(&self.pool)
            .await?;
        match row {
            Some(row) => {
                let person: String = row.try_get(0)?;
                self.person(&person).await
            }
            None => Ok(None),
        }
    }

    /// Connects an identity with a person. One that belongs to somebody is not taken away.
    pub async fn link_identity(
        &self,
        person: &str,
        identity: &ExternalIdentity,
        email: Option<&str>,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        insert_identity(&mut transaction, person, identity, email).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// The identities of a person, the oldest first.
    pub async fn identities(&self, person: &str) -> Result<Vec<StoredIdentity>, StoreError> {
        let all = "SELECT id, issuer, email, created FROM identities WHERE person = $1 ORDER BY created, id";
        let rows = sqlx::query(all)
            .bind(person.to_owned())
            .fetch_all(&self.pool)
            .await?;
        let rows = rows.iter().map(|row| {
            Ok(StoredIdentity {
                id: row.try_get(0)?,
                issuer: row.try_get(1)?,
                email: row.try_get(2)?,
                created: row.try_get(3)?,
            })
        });
        rows.collect()
    }

    /// Disconnects an identity of a person, unless it is the only way to sign in; returns whether there was one.
    pub async fn unlink_identity(
        &self,
        person: &str,
        id: &str,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin_write().await?;
        let done = sqlx::query("DELETE FROM identities WHERE id = $1 AND person = $2")
            .bind(id.to_owned())
            .bind(person.to_owned())
            .execute(&mut *transaction)
            .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        let ways = "SELECT count(*) FROM people WHERE id = $1 AND (password IS NOT NULL \
             OR EXISTS (SELECT 1 FROM identities WHERE person = $1))";
        let row = sqlx::query(ways).bind(person.to_owned());
        let row = row.fetch_one(&mut *transaction).await?;
        if row.try_get::<i64, _>(0)? == 0 {
            return Err(StoreError::LastIdentity);
        }
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

pub(super) async fn insert_identity(
    transaction: &mut Transaction<'static, Any>,
    person: &str,
    identity: &ExternalIdentity,
    email: Option<&str>,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO identities (issuer, subject, id, person, email, created) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (issuer, subject) DO NOTHING";
    let done = sqlx::query(insert)
        .bind(identity.issuer.clone())
        .bind(identity.subject.clone())
        .bind(Uuid::now_v7().to_string())
        .bind(person.to_owned())
        .bind(email.map(str::to_owned))
        .bind(milliseconds_now())
        .execute(&mut **transaction)
        .await?;
    match done.rows_affected() {
        0 => Err(StoreError::IdentityTaken),
        _ => Ok(()),
    }
}

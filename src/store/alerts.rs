//! Alerts: who is told when a key or an account has spent so much of its cap.

use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use uuid::Uuid;

use super::audit::{self, AuditEntry};
use super::database::{Store, milliseconds_now};
use super::error::StoreError;

/// What an alert is about, by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertSubject {
    Key(String),
    Account(String),
}

/// Where an alert goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertTarget {
    /// A person who belongs to the account, by the id: to the address that is proven then.
    Person(String),
    Email(String),
    Webhook(String),
}

/// An alert to be made.
#[derive(Debug, Clone)]
pub struct NewAlert {
    pub subject: AlertSubject,
    /// Thresholds in percent, the lowest first.
    pub percents: Vec<u8>,
    pub target: AlertTarget,
    /// What messages to a webhook are signed with.
    pub secret: Option<String>,
    /// The language of mail.
    pub language: &'static str,
}

#[derive(Debug, Clone)]
pub struct StoredAlert {
    pub id: String,
    pub subject: AlertSubject,
    /// The name of the account.
    pub account: String,
    /// The name of the key.
    pub key: Option<String>,
    pub percents: Vec<u8>,
    pub target: AlertTarget,
    /// The username of the person it goes to.
    pub handle: Option<String>,
    /// The address that the person has proven, who still belongs to the account.
    pub proven_email: Option<String>,
    pub secret: Option<String>,
    pub language: String,
    /// Who has said where it goes.
    pub made_by: String,
    /// Whether that person may still do so; always, if it was no person.
    pub is_allowed: bool,
    pub created: i64,
    /// The last message, which waits if `due` is there.
    pub message: Option<String>,
    pub due: Option<i64>,
    pub attempts: i64,
    pub last: Option<AlertOutcome>,
}

/// What became of the last attempt to tell somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertOutcome {
    pub at: i64,
    /// `None`: it was a test message.
    pub percent: Option<u8>,
    /// `sent`, or why it failed.
    pub outcome: String,
}

/// Which alerts are asked for.
#[derive(Debug, Clone, Copy)]
pub enum AlertFilter<'a> {
    /// Of a key, by its id.
    Key(&'a str),
    /// Of the cap of an account, by its id.
    Account(&'a str),
    /// Of all accounts that a person belongs to, and of their keys.
    Member(&'a str),
    One(&'a str),
}

/// Somebody of an account with a proven address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertRecipient {
    /// The id.
    pub person: String,
    pub handle: String,
    pub display: String,
    pub email: String,
}

const COLUMNS: &str = "SELECT alerts.id, alerts.key_id, alerts.account, owner.name, keys.name, percents, alerts.person, \
     alerts.email, webhook, people.handle, (SELECT people.email FROM memberships WHERE memberships.account = owner.id \
     AND memberships.person = people.id AND people.verified IS NOT NULL AND people.disabled IS NULL), secret, language, \
     alerts.made_by, alerts.created, message, due, attempts, last_at, last_percent, last_outcome, \
     (SELECT COUNT(*) FROM people maker LEFT JOIN memberships ON memberships.person = maker.id \
     AND memberships.account = owner.id WHERE maker.handle = alerts.made_by AND NOT (maker.disabled IS NULL \
     AND (maker.role = 'admin' OR maker.role = 'member' AND COALESCE(memberships.role, '') IN \
     ('owner', CASE WHEN alerts.key_id IS NULL THEN 'owner' ELSE 'member' END)))) \
     FROM alerts LEFT JOIN keys ON keys.id = alerts.key_id \
     JOIN accounts owner ON owner.id = COALESCE(alerts.account, keys.account) \
     LEFT JOIN people ON people.id = alerts.person";

impl Store {
    /// Makes an alert, of which there may be `max` for the same key or account.
    pub async fn create_alert(
        &self,
        alert: &NewAlert,
        max: usize,
        entry: &AuditEntry,
    ) -> Result<String, StoreError> {
        let (key, account) = alert.subject.columns();
        let mut transaction = self.begin_write().await?;
        let count = "SELECT COUNT(*) FROM alerts WHERE key_id = $1 OR account = $2";
        let count = sqlx::query(count)
            .bind(key.clone())
            .bind(account.clone())
            .fetch_one(&mut *transaction)
            .await?;
        let count: i64 = count.try_get(0)?;
        if usize::try_from(count).is_ok_and(|count| count >= max) {
            return Err(StoreError::TooManyAlerts(max));
        }
        let id = Uuid::now_v7().to_string();
        let (person, email, webhook) = alert.target.columns();
        let insert = "INSERT INTO alerts (id, key_id, account, percents, person, email, webhook, secret, language, made_by, created) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        sqlx::query(insert)
            .bind(id.clone())
            .bind(key)
            .bind(account)
            .bind(encode_percents(&alert.percents))
            .bind(person)
            .bind(email)
            .bind(webhook)
            .bind(alert.secret.clone())
            .bind(alert.language)
            .bind(entry.actor.clone())
            .bind(milliseconds_now())
            .execute(&mut *transaction)
            .await?;
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(id)
    }

    /// Some alerts, the oldest first; none of keys that are revoked.
    pub async fn alerts(&self, filter: AlertFilter<'_>) -> Result<Vec<StoredAlert>, StoreError> {
        let (condition, id) = match filter {
            AlertFilter::Key(id) => ("alerts.key_id = $1", id),
            AlertFilter::Account(id) => ("alerts.account = $1", id),
            AlertFilter::Member(id) => (
                "owner.id IN (SELECT account FROM memberships WHERE person = $1)",
                id,
            ),
            AlertFilter::One(id) => ("alerts.id = $1", id),
        };
        let some =
            format!("{COLUMNS} WHERE {condition} AND keys.revoked IS NULL ORDER BY alerts.id");
        let rows = sqlx::query(AssertSqlSafe(some))
            .bind(id.to_owned())
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredAlert::from_row).collect()
    }

    /// Who of an account can be told by mail, by name.
    pub async fn alert_recipients(&self, account: &str) -> Result<Vec<AlertRecipient>, StoreError> {
        let all = "SELECT people.id, handle, display, email FROM memberships \
             JOIN people ON people.id = memberships.person JOIN accounts ON accounts.id = memberships.account \
             WHERE accounts.name = $1 AND email IS NOT NULL AND verified IS NOT NULL AND people.disabled IS NULL \
             ORDER BY handle";
        let rows = sqlx::query(all)
            .bind(account.to_owned())
            .fetch_all(&self.pool)
            .await?;
        let people = rows.iter().map(|row| {
            Ok(AlertRecipient {
                person: row.try_get(0)?,
                handle: row.try_get(1)?,
                display: row.try_get(2)?,
                email: row.try_get(3)?,
            })
        });
        people.collect()
    }

    /// Changes an alert; `None`: unchanged. With another target comes another secret, or none, and who answers for it.
    pub async fn change_alert(
        &self,
        id: &str,
        percents: Option<&[u8]>,
        target: Option<(&AlertTarget, Option<&str>)>,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        if let Some(percents) = percents {
            sqlx::query("UPDATE alerts SET percents = $1 WHERE id = $2")
                .bind(encode_percents(percents))
                .bind(id.to_owned())
                .execute(&mut *transaction)
                .await?;
        }
        if let Some((target, secret)) = target {
            let (person, email, webhook) = target.columns();
            let put = "UPDATE alerts SET person = $1, email = $2, webhook = $3, secret = $4, made_by = $5 WHERE id = $6";
            sqlx::query(put)
                .bind(person)
                .bind(email)
                .bind(webhook)
                .bind(secret.map(str::to_owned))
                .bind(entry.actor.clone())
                .bind(id.to_owned())
                .execute(&mut *transaction)
                .await?;
        }
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    pub async fn delete_alert(&self, id: &str, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        sqlx::query("DELETE FROM alerts WHERE id = $1")
            .bind(id.to_owned())
            .execute(&mut *transaction)
            .await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }
}

/// Deletes the alerts of a key that is revoked.
pub(super) async fn delete_of_key(
    transaction: &mut Transaction<'static, Any>,
    key: &str,
) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM alerts WHERE key_id = $1")
        .bind(key.to_owned())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

impl AlertSubject {
    /// The ids of the key and of the account.
    fn columns(&self) -> (Option<String>, Option<String>) {
        match self {
            AlertSubject::Key(id) => (Some(id.clone()), None),
            AlertSubject::Account(id) => (None, Some(id.clone())),
        }
    }

    pub(super) fn decode(
        key: Option<String>,
        account: Option<String>,
    ) -> Result<AlertSubject, StoreError> {
        match (key, account) {
            (Some(key), None) => Ok(AlertSubject::Key(key)),
            (None, Some(account)) => Ok(AlertSubject::Account(account)),
            _ => Err(StoreError::Corrupt("subject of an alert")),
        }
    }
}

impl AlertTarget {
    /// The id of the person, the address and the URL.
    fn columns(&self) -> (Option<String>, Option<String>, Option<String>) {
        match self {
            AlertTarget::Person(id) => (Some(id.clone()), None, None),
            AlertTarget::Email(email) => (None, Some(email.clone()), None),
            AlertTarget::Webhook(url) => (None, None, Some(url.clone())),
        }
    }

    fn from_row(row: &AnyRow, first: usize) -> Result<AlertTarget, StoreError> {
        let columns = (
            row.try_get(first)?,
            row.try_get(first + 1)?,
            row.try_get(first + 2)?,
        );
        match columns {
            (Some(person), None, None) => Ok(AlertTarget::Person(person)),
            (None, Some(email), None) => Ok(AlertTarget::Email(email)),
            (None, None, Some(url)) => Ok(AlertTarget::Webhook(url)),
            _ => Err(StoreError::Corrupt("target of an alert")),
        }
    }
}

impl StoredAlert {
    fn from_row(row: &AnyRow) -> Result<StoredAlert, StoreError> {
        let percents: String = row.try_get(5)?;
        let (at, percent): (Option<i64>, Option<i64>) = (row.try_get(18)?, row.try_get(19)?);
        let outcome: Option<String> = row.try_get(20)?;
        let refused: i64 = row.try_get(21)?;
        let last = at.zip(outcome).map(|(at, outcome)| AlertOutcome {
            at,
            percent: percent.and_then(|percent| u8::try_from(percent).ok()),
            outcome,
        });
        Ok(StoredAlert {
            id: row.try_get(0)?,
            subject: AlertSubject::decode(row.try_get(1)?, row.try_get(2)?)?,
            account: row.try_get(3)?,
            key: row.try_get(4)?,
            percents: decode_percents(&percents)?,
            target: AlertTarget::from_row(row, 6)?,
            handle: row.try_get(9)?,
            proven_email: row.try_get(10)?,
            secret: row.try_get(11)?,
            language: row.try_get(12)?,
            made_by: row.try_get(13)?,
            is_allowed: refused == 0,
            created: row.try_get(14)?,
            message: row.try_get(15)?,
            due: row.try_get(16)?,
            attempts: row.try_get(17)?,
            last,
        })
    }
}

fn encode_percents(percents: &[u8]) -> String {
    let percents = percents.iter().map(u8::to_string);
    percents.collect::<Vec<String>>().join(" ")
}

pub(super) fn decode_percents(text: &str) -> Result<Vec<u8>, StoreError> {
    let percents = text.split_whitespace().map(str::parse);
    let percents: Result<Vec<u8>, _> = percents.collect();
    percents.map_err(|_| StoreError::Corrupt("thresholds of an alert"))
}

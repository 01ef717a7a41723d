//! People: who may sign in to the console, as what, and with which password.

use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use uuid::Uuid;

use super::accounts;
use super::audit::{self, AuditEntry};
use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::memberships::{MembershipRole, insert_member};

const COLUMNS: &str = "SELECT id, handle, display, email, password, role, disabled, epoch, created, seen, verified, totp FROM people";

/// What a person may do in the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersonRole {
    /// Everything.
    Admin,
    /// Keys of accounts that the person belongs to, within `console.member_keys`.
    Member,
    /// The same keys, without changing anything.
    Viewer,
}

impl PersonRole {
    pub const ALL: [PersonRole; 3] = [PersonRole::Admin, PersonRole::Member, PersonRole::Viewer];

    pub const fn word(self) -> &'static str {
        match self {
            PersonRole::Admin => "admin",
            PersonRole::Member => "member",
            PersonRole::Viewer => "viewer",
        }
    }

    pub fn from_word(word: &str) -> Option<PersonRole> {
        PersonRole::ALL.into_iter().find(|role| role.word() == word)
    }
}

#[derive(Debug, Clone)]
pub struct Person {
    pub id: String,
    pub handle: String,
    pub display: String,
    /// In lower case.
    pub email: Option<String>,
    /// When it was proven that the address is the person's.
    pub verified: Option<i64>,
    /// The hash of the password; `None`: none has been chosen.
    pub password: Option<String>,
    /// The secret of the second factor, in base 32.
    pub totp: Option<String>,
    pub role: PersonRole,
    /// These in milliseconds since 1970.
    pub disabled: Option<i64>,
    pub created: i64,
    pub seen: Option<i64>,
    /// Sessions of an earlier epoch are over.
    pub epoch: i64,
}

/// A person to be created. The handle and the e-mail address are in lower case.
#[derive(Debug, Clone)]
pub struct NewPerson {
    pub handle: String,
    pub display: String,
    pub email: Option<String>,
    /// It was proven that the address is the person's.
    pub is_verified: bool,
    /// The hash of a password.
    pub password: Option<String>,
    pub role: PersonRole,
}

/// A change of a person; `None`: unchanged.
#[derive(Debug, Clone, Default)]
pub struct PersonChange {
    pub display: Option<String>,
    pub email: Option<Option<String>>,
    pub role: Option<PersonRole>,
    pub is_disabled: Option<bool>,
}

impl Store {
    pub async fn create_person(
        &self,
        person: &NewPerson,
        entry: &AuditEntry,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.begin_write().await?;
        let created = insert_person(&mut transaction, person).await?;
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(created)
    }

    pub async fn person(&self, id: &str) -> Result<Option<Person>, StoreError> {
        let one = format!("{COLUMNS} WHERE id = $1");
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(id.to_owned())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(Person::from_row).transpose()
    }

    /// A person by handle or e-mail address. No handle has an `@`, so that it is one or the other.
    pub async fn person_by_login(&self, login: &str) -> Result<Option<Person>, StoreError> {
        let one = format!("{COLUMNS} WHERE handle = $1 OR email = $1");
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(login.to_lowercase())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(Person::from_row).transpose()
    }

    /// All people, by handle.
    pub async fn people(&self) -> Result<Vec<Person>, StoreError> {
        let all = format!("{COLUMNS} ORDER BY handle");
        let rows = sqlx::query(AssertSqlSafe(all))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(Person::from_row).collect()
    }

    /// Sets a new password, which ends all sessions of the person.
    pub async fn set_password(
        &self,
        id: &str,
        password: &str,
        entry: &AuditEntry,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.begin_write().await?;
        let person = put_password(&mut transaction, id, password).await?;
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(person)
    }

    /// Changes a person. A new role ends the sessions; a disabled person has no sessions, and no keys that work.
    pub async fn change_person(
        &self,
        id: &str,
        change: &PersonChange,
        entry: &AuditEntry,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.begin_write().await?;
        let mut person = find(&mut transaction, id).await?;
        if let Some(display) = &change.display {
            person.display.clone_from(display);
        }
        if let Some(email) = &change.email {
            check_email(&mut transaction, email.as_deref(), Some(id)).await?;
            if *email != person.email {
                person.verified = None;
            }
            person.email.clone_from(email);
        }
        if let Some(role) = change.role.filter(|role| *role != person.role) {
            person.role = role;
            person.epoch += 1;
        }
        if let Some(is_disabled) = change.is_disabled
            && is_disabled != person.disabled.is_some()
        {
            person.disabled = is_disabled.then(milliseconds_now);
            person.epoch += 1;
            self.put_disabled(&mut transaction, &person.handle, person.disabled)
                .await?;
        }
        put(&mut transaction, &person).await?;
        if change.role.is_some() || change.is_disabled.is_some() {
            check_administrators(&mut transaction).await?;
        }
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(person)
    }
}

/// Creates a person with an account of the same name.
pub(super) async fn insert_person(
    transaction: &mut Transaction<'static, Any>,
    new: &NewPerson,
) -> Result<Person, StoreError> {
    accounts::check_free(transaction, &new.handle).await?;
    check_email(transaction, new.email.as_deref(), None).await?;
    let person = Person {
        id: Uuid::now_v7().to_string(),
        handle: new.handle.clone(),
        display: new.display.clone(),
        email: new.email.clone(),
        verified: (new.is_verified && new.email.is_some()).then(milliseconds_now),
        password: new.password.clone(),
        totp: None,
        role: new.role,
        disabled: None,
        created: milliseconds_now(),
        seen: None,
        epoch: 0,
    };
    put(transaction, &person).await?;
    let account = accounts::insert(transaction, &person.handle, accounts::PERSON).await?;
    insert_member(transaction, &account, &person.id, MembershipRole::Owner).await?;
    Ok(person)
}

/// Writes a new password; the sessions of the old one are over.
pub(super) async fn put_password(
    transaction: &mut Transaction<'static, Any>,
    id: &str,
    password: &str,
) -> Result<Person, StoreError> {
    let mut person = find(transaction, id).await?;
    person.password = Some(password.to_owned());
    person.epoch += 1;
    put(transaction, &person).await?;
    // Links to choose a password, and sign-ins that wait for a code, are of the time before it.
    let links = "DELETE FROM tokens WHERE person = $1 AND purpose IN ('setup', 'reset', 'second_factor') AND used IS NULL";
    sqlx::query(links)
        .bind(person.id.clone())
        .execute(&mut **transaction)
        .await?;
    Ok(person)
}

/// Writes an address that was proven.
pub(super) async fn put_verified(
    transaction: &mut Transaction<'static, Any>,
    id: &str,
    email: &str,
) -> Result<Person, StoreError> {
    check_email(transaction, Some(email), Some(id)).await?;
    let mut person = find(transaction, id).await?;
    person.email = Some(email.to_owned());
    person.verified = Some(milliseconds_now());
    put(transaction, &person).await?;
    Ok(person)
}

pub(super) async fn find(
    transaction: &mut Transaction<'static, Any>,
    id: &str,
) -> Result<Person, StoreError> {
    let one = format!("{COLUMNS} WHERE id = $1");
    let row = sqlx::query(AssertSqlSafe(one))
        .bind(id.to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    let row = row.ok_or_else(|| StoreError::NoSuchPerson(id.to_owned()))?;
    Person::from_row(&row)
}

async fn check_email(
    transaction: &mut Transaction<'static, Any>,
    email: Option<&str>,
    except: Option<&str>,
) -> Result<(), StoreError> {
    let Some(email) = email else {
        return Ok(());
    };
    let taken = sqlx::query("SELECT 1 FROM people WHERE email = $1 AND id <> $2")
        .bind(email.to_owned())
        .bind(except.unwrap_or_default().to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    match taken {
        Some(_) => Err(StoreError::EmailTaken(email.to_owned())),
        None => Ok(()),
    }
}

/// Refuses a change after which nobody could administer.
async fn check_administrators(
    transaction: &mut Transaction<'static, Any>,
) -> Result<(), StoreError> {
    let left = sqlx::query("SELECT 1 FROM people WHERE role = 'admin' AND disabled IS NULL")
        .fetch_optional(&mut **transaction)
        .await?;
    left.map(|_| ()).ok_or(StoreError::LastAdministrator)
}

pub(super) async fn put(
    transaction: &mut Transaction<'static, Any>,
    person: &Person,
) -> Result<(), StoreError> {
    let put = "INSERT INTO people (id, handle, display, email, password, role, disabled, epoch, created, seen, verified, totp) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (id) DO UPDATE SET display = excluded.display, email = excluded.email, \
         password = excluded.password, role = excluded.role, disabled = excluded.disabled, epoch = excluded.epoch, \
         verified = excluded.verified, totp = excluded.totp";
    sqlx::query(put)
        .bind(person.id.clone())
        .bind(person.handle.clone())
        .bind(person.display.clone())
        .bind(person.email.clone())
        .bind(person.password.clone())
        .bind(person.role.word())
        .bind(person.disabled)
        .bind(person.epoch)
        .bind(person.created)
        .bind(person.seen)
        .bind(person.verified)
        .bind(person.totp.clone())
        .execute(&mut **transaction)
        .await?;
    // What is left of other epochs is over, and needs no row.
    sqlx::query("DELETE FROM sessions WHERE person = $1 AND epoch <> $2")
        .bind(person.id.clone())
        .bind(person.epoch)
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

impl Person {
    /// What the person may do in an account by the role there: viewers only look, wherever it is.
    pub const fn role_of(&self, role: MembershipRole) -> MembershipRole {
        match self.role {
            PersonRole::Viewer => MembershipRole::Viewer,
            PersonRole::Admin | PersonRole::Member => role,
        }
    }

    pub(super) fn from_row(row: &AnyRow) -> Result<Person, StoreError> {
        let role: String = row.try_get(5)?;
        Ok(Person {
            id: row.try_get(0)?,
            handle: row.try_get(1)?,
            display: row.try_get(2)?,
            email: row.try_get(3)?,
            password: row.try_get(4)?,
            role: PersonRole::from_word(&role).ok_or(StoreError::Corrupt("role"))?,
            disabled: row.try_get(6)?,
            epoch: row.try_get(7)?,
            created: row.try_get(8)?,
            seen: row.try_get(9)?,
            verified: row.try_get(10)?,
            totp: row.try_get(11)?,
        })
    }
}

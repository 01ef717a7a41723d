//! What can go wrong with the store.

use std::fmt;
use std::io;

#[derive(Debug)]
pub enum StoreError {
    /// A newer version of the program has migrated the store.
    NewerSchema {
        found: i64,
        known: i64,
    },
    /// Another key that is not revoked has the name.
    NameTaken(String),
    NoSuchKey(String),
    ResetWithoutCap,
    /// A person or an account has the handle, or had it.
    HandleTaken(String),
    EmailTaken(String),
    NoSuchPerson(String),
    /// No administrator could sign in any more.
    LastAdministrator,
    /// The team would have no owner any more.
    LastOwner,
    /// The person belongs to the team already.
    AlreadyMember,
    /// The link was used, has expired or never was one.
    LinkOver,
    /// The identity belongs to somebody.
    IdentityTaken,
    /// Without the identity the person could not sign in any more.
    LastIdentity,
    /// The person has as many keys as may be.
    TooManyKeys(u64),
    /// The key or account has as many alerts as may be.
    TooManyAlerts(usize),
    /// The store did not answer in time, or failed a moment ago.
    Unavailable,
    /// What is left of the disk is for usage records.
    LowDisk,
    /// A stored value cannot be decoded.
    Corrupt(&'static str),
    File(io::Error),
    /// The file is no database, or a damaged one.
    Damaged(String),
    Database(sqlx::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NewerSchema { found, known } => write!(
                out,
                "the store has been used by a newer version of omniglot (its schema is {found}, this program knows \
                 {known}): run that version, or name another store"
            ),
            StoreError::NameTaken(name) => {
                write!(
                    out,
                    "there is a key named {name:?} already; revoke it first, or choose another name"
                )
            }
            StoreError::NoSuchKey(name) => {
                write!(
                    out,
                    "the store has no key named {name:?} that is not revoked"
                )
            }
            StoreError::ResetWithoutCap => out
                .write_str("a reset goes with a spending cap; set one, or leave the reset at none"),
            StoreError::HandleTaken(handle) => write!(
                out,
                "the username {handle:?} is taken, or was; choose another"
            ),
            StoreError::EmailTaken(email) => {
                write!(out, "another account has the e-mail address {email:?}")
            }
            StoreError::NoSuchPerson(handle) => {
                write!(out, "there is no account of a person named {handle:?}")
            }
            StoreError::LastAdministrator => out.write_str(
                "this is the last administrator who is not disabled; make another one first",
            ),
            StoreError::LastOwner => out.write_str(
                "this is the last owner of the team; make another member an owner first",
            ),
            StoreError::AlreadyMember => {
                out.write_str("the person belongs to the team already; change the role instead")
            }
            StoreError::LinkOver => {
                out.write_str("the link was used already or has expired; ask for a new one")
            }
            StoreError::TooManyKeys(max) => {
                write!(out, "there are {max} keys already; revoke one first")
            }
            StoreError::TooManyAlerts(max) => {
                write!(out, "there are {max} alerts already; delete one first")
            }
            StoreError::Unavailable => out.write_str("it does not answer in time"),
            StoreError::IdentityTaken => {
                out.write_str("this identity belongs to another account; disconnect it there first")
            }
            StoreError::LastIdentity => {
                out.write_str("it is the only way to sign in; set a password first")
            }
            StoreError::LowDisk => out.write_str(
                "its disk has less free than journal.min_free, which is left to usage records",
            ),
            StoreError::Corrupt(what) => write!(out, "the store holds an unreadable {what}"),
            StoreError::File(error) => {
                write!(out, "the file of the store cannot be opened: {error}")
            }
            StoreError::Damaged(reason) => write!(
                out,
                "the file is damaged or no SQLite database ({reason}): restore it from a backup, or name another file"
            ),
            StoreError::Database(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// PostgreSQL's error classes for invalid data and violated constraints: the query is at fault, not the database.
const QUERY_ERROR_CLASSES: [&str; 2] = ["22", "23"];

impl StoreError {
    /// Tells whether there was no answer in time. Other queries may be the reason, rather than the store.
    pub(super) const fn is_late(&self) -> bool {
        matches!(
            self,
            StoreError::Unavailable | StoreError::Database(sqlx::Error::PoolTimedOut)
        )
    }

    /// Tells whether other queries would fail as well.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            StoreError::Unavailable | StoreError::File(_) | StoreError::Damaged(_) => true,
            StoreError::Database(sqlx::Error::Database(error)) => {
                !error.code().is_some_and(|code| {
                    let of = |class| code.starts_with(class);
                    code.len() == 5 && QUERY_ERROR_CLASSES.into_iter().any(of)
                })
            }
            StoreError::Database(_) => true,
            _ => false,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        StoreError::Database(error)
    }
}

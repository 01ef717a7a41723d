//! Who belongs to an account, and as what.

use std::collections::HashMap;

use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};

use super::accounts::{self, AccountSummary};
use super::audit::{self, AuditEntry};
use super::database::Store;
use super::error::StoreError;

/// What a person may do with the keys of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipRole {
    /// Everything, also with the members of a team and its invitations.
    Owner,
    /// Makes and changes keys.
    Member,
    /// Looks at them.
    Viewer,
}

impl MembershipRole {
    pub const ALL: [MembershipRole; 3] = [
        MembershipRole::Owner,
        MembershipRole::Member,
        MembershipRole::Viewer,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            MembershipRole::Owner => "owner",
            MembershipRole::Member => "member",
            MembershipRole::Viewer => "viewer",
        }
    }

    pub fn from_word(word: &str) -> Option<MembershipRole> {
        let mut all = MembershipRole::ALL.into_iter();
        all.find(|role| role.word() == word)
    }

    pub(super) fn from_column(word: &str) -> Result<MembershipRole, StoreError> {
        MembershipRole::from_word(word).ok_or(StoreError::Corrupt("role"))
    }
}

/// A person who belongs to an account.
#[derive(Debug, Clone)]
pub struct StoredMember {
    pub handle: String,
    pub display: String,
    pub role: MembershipRole,
    /// The person is disabled.
    pub is_disabled: bool,
}

/// What becomes of a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembershipChange {
    Role(MembershipRole),
    Removal,
}

impl Store {
    /// What a person may do in an account; `None`: the person does not belong to it.
    pub async fn membership(
        &self,
        person: &str,
        account: &str,
    ) -> Result<Option<MembershipRole>, StoreError> {
        let one = "SELECT role FROM memberships JOIN accounts ON accounts.id = memberships.account \
             WHERE person = $1 AND accounts.name = $2";
        let row = sqlx::query(one)
            .bind(person.to_owned())
            .bind(account.to_owned())
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let role: String = row.try_get(0)?;
        MembershipRole::from_column(&role).map(Some)
    }

    /// What a person may do, by the ids of the accounts.
    pub async fn memberships(
        &self,
        person: &str,
    ) -> Result<HashMap<String, MembershipRole>, StoreError> {
        let rows = sqlx::query("SELECT account, role FROM memberships WHERE person = $1")
            .bind(person.to_owned())
            .fetch_all(&self.pool)
            .await?;
        let roles = rows.iter().map(|row| {
            let role: String = row.try_get(1)?;
            Ok((row.try_get(0)?, MembershipRole::from_column(&role)?))
        });
        roles.collect()
    }

    /// Who belongs to an account: owners first, then members and viewers, each by handle.
    pub async fn members(&self, account: &str) -> Result<Vec<StoredMember>, StoreError> {
        let all = "SELECT handle, display, memberships.role, disabled FROM memberships \
             JOIN people ON people.id = memberships.person WHERE account = $1 \
             ORDER BY CASE memberships.role WHEN 'owner' THEN 0 WHEN 'member' THEN 1 ELSE 2 END, handle";
        let rows = sqlx::query(all)
            .bind(account.to_owned())
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredMember::from_row).collect()
    }

    /// Creates a team, and makes a person its first owner.
    pub async fn create_team(
        &self,
        name: &str,
        owner: Option<&str>,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        accounts::check_free(&mut transaction, name).await?;
        let team = accounts::insert(&mut transaction, name, accounts::TEAM).await?;
        if let Some(owner) = owner {
            insert_member(&mut transaction, &team, owner, MembershipRole::Owner).await?;
        }
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// Puts a person into an account.
    pub async fn add_member(
        &self,
        account: &AccountSummary,
        person: &str,
        role: MembershipRole,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        insert_member(&mut transaction, &account.id, person, role).await?;
        end_invitations(&mut transaction, &account.id, person).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// Changes the role of a member, or ends the membership. Unless `may_orphan`, one owner who can sign in stays.
    pub async fn change_member(
        &self,
        account: &AccountSummary,
        person: &str,
        change: MembershipChange,
        may_orphan: bool,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        let had_owner = has_owner(&mut transaction, &account.id).await?;
        let done = match change {
            MembershipChange::Role(role) => {
                sqlx::query("UPDATE memberships SET role = $3 WHERE account = $1 AND person = $2")
                    .bind(account.id.clone())
                    .bind(person.to_owned())
                    .bind(role.word())
            }
            MembershipChange::Removal => {
                sqlx::query("DELETE FROM memberships WHERE account = $1 AND person = $2")
                    .bind(account.id.clone())
                    .bind(person.to_owned())
            }
        };
        let done = done.execute(&mut *transaction).await?;
        if done.rows_affected() == 0 {
            return Err(StoreError::NoSuchPerson(person.to_owned()));
        }
        if !may_orphan && had_owner && !has_owner(&mut transaction, &account.id).await? {
            return Err(StoreError::LastOwner);
        }
        end_invitations(&mut transaction, &account.id, person).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }
}

/// Whether a team has an owner who can do what owners do.
async fn has_owner(
    transaction: &mut Transaction<'static, Any>,
    account: &str,
) -> Result<bool, StoreError> {
    let owner = "SELECT 1 FROM memberships JOIN people ON people.id = memberships.person \
         WHERE account = $1 AND memberships.role = 'owner' AND disabled IS NULL AND people.role <> 'viewer'";
    let owner = sqlx::query(owner)
        .bind(account.to_owned())
        .fetch_optional(&mut **transaction)
        .await?;
    Ok(owner.is_some())
}

pub(super) async fn insert_member(
    transaction: &mut Transaction<'static, Any>,
    account: &str,
    person: &str,
    role: MembershipRole,
) -> Result<(), StoreError> {
    let made = "INSERT INTO memberships (account, person, role) VALUES ($1, $2, $3) \
         ON CONFLICT (account, person) DO NOTHING";
    let made = sqlx::query(made)
        .bind(account.to_owned())
        .bind(person.to_owned())
        .bind(role.word())
        .execute(&mut **transaction)
        .await?;
    match made.rows_affected() {
        0 => Err(StoreError::AlreadyMember),
        _ => Ok(()),
    }
}

/// Ends the open invitations to a team that are for the proven address of a person: what was decided of the person since would
/// be undone by them.
pub(super) async fn end_invitations(
    transaction: &mut Transaction<'static, Any>,
    account: &str,
    person: &str,
) -> Result<(), StoreError> {
    let open = "DELETE FROM tokens WHERE purpose = 'invite' AND account = $1 AND used IS NULL AND \
         email = (SELECT email FROM people WHERE people.id = $2 AND verified IS NOT NULL)";
    sqlx::query(open)
        .bind(account.to_owned())
        .bind(person.to_owned())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

impl StoredMember {
    fn from_row(row: &AnyRow) -> Result<StoredMember, StoreError> {
        let role: String = row.try_get(2)?;
        let disabled: Option<i64> = row.try_get(3)?;
        Ok(StoredMember {
            handle: row.try_get(0)?,
            display: row.try_get(1)?,
            role: MembershipRole::from_column(&role)?,
            is_disabled: disabled.is_some(),
        })
    }
}

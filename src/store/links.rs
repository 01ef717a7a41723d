//! Links that work once: to choose a password, to prove an address, to make an account. Only the hashes of their tokens are
//! stored.

use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use uuid::Uuid;

use super::audit::{self, AuditEntry};
use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::identities::{ExternalIdentity, insert_identity};
use super::memberships::{MembershipRole, insert_member};
use super::people::{NewPerson, Person, PersonRole, insert_person, put_password, put_verified};
use super::secrets::hex;

pub(super) const COLUMNS: &str = "SELECT id, purpose, person, email, role, made_by, created, expires, issuer, subject, display, \
     account, (SELECT name FROM accounts WHERE accounts.id = tokens.account), account_role, sent FROM tokens";

/// Which links stand: an invitation, or a link to choose a password, only as long as who made it may make such; one to a team
/// only as long as there is the team.
pub(super) const STANDS: &str = "used IS NULL AND (account IS NULL OR \
     EXISTS (SELECT 1 FROM accounts WHERE accounts.id = tokens.account AND accounts.disabled IS NULL)) AND \
     (purpose NOT IN ('invite', 'setup') OR made_by = '(command line)' OR EXISTS (SELECT 1 FROM people LEFT JOIN memberships \
     ON memberships.person = people.id AND memberships.account = tokens.account WHERE people.handle = tokens.made_by \
     AND people.disabled IS NULL AND (people.role = 'admin' OR people.role = 'member' AND memberships.role = 'owner')))";

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    /// To choose a password, given by an administrator.
    Setup,
    /// To choose another password, sent by mail.
    Reset,
    /// To make an account, given by an administrator.
    Invite,
    /// To make an account of an address that it was sent to.
    SignUp,
    /// To prove an address.
    Verify,
    /// To make an account of an identity.
    Welcome,
    /// No link, but a sign-in that waits for a code of the second factor.
    SecondFactor,
}

impl LinkPurpose {
    const fn word(self) -> &'static str {
        match self {
            LinkPurpose::Setup => "setup",
            LinkPurpose::Reset => "reset",
            LinkPurpose::Invite => "invite",
            LinkPurpose::SignUp => "sign_up",
            LinkPurpose::Verify => "verify",
            LinkPurpose::Welcome => "welcome",
            LinkPurpose::SecondFactor => "second_factor",
        }
    }
}

#[derive(Debug, Clone)]
pub struct StoredLink {
    pub id: String,
    /// The id of the person whose password or address it is for.
    pub person: Option<String>,
    /// The address that is proven, or that of the account to be made.
    pub email: Option<String>,
    pub role: Option<PersonRole>,
    /// A handle; empty: nobody was signed in.
    pub made_by: String,
    pub created: i64,
    pub expires: i64,
    /// The identity of the account to be made, and its name.
    pub identity: Option<ExternalIdentity>,
    pub display: Option<String>,
    /// The team that it is an invitation to.
    pub team: Option<InvitedTeam>,
    /// Nobody but the owner of the address has seen it.
    pub is_sent: bool,
}

/// The team of an invitation, with the role that there is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitedTeam {
    /// The id of the account.
    pub id: String,
    pub name: String,
    pub role: MembershipRole,
}

/// A link to be made.
#[derive(Debug, Clone)]
pub struct NewLink {
    pub purpose: LinkPurpose,
    /// The hash of the token.
    pub sha256: [u8; 32],
    pub person: Option<String>,
    pub email: Option<String>,
    pub role: Option<PersonRole>,
    pub identity: Option<ExternalIdentity>,
    pub display: Option<String>,
    pub team: Option<InvitedTeam>,
    pub is_sent: bool,
    pub expires: i64,
}

impl NewLink {
    pub const fn new(purpose: LinkPurpose, sha256: [u8; 32], expires: i64) -> NewLink {
        NewLink {
            purpose,
            sha256,
            person: None,
            email: None,
            role: None,
            identity: None,
            display: None,
            team: None,
            is_sent: false,
            expires,
        }
    }
}

impl Store {
    /// Makes a link, and returns its id. Earlier ones for the same person or address end, except for invitations.
    pub async fn create_link(
        &self,
        link: &NewLink,
        entry: &AuditEntry,
    ) -> Result<String, StoreError> {
        let mut transaction = self.begin_write().await?;
        let id = put_link(&mut transaction, link, &entry.actor).await?;
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(id)
    }

    /// Creates a person without a password, with the link to choose one.
    pub async fn create_person_with_link(
        &self,
        person: &NewPerson,
        link: NewLink,
        entry: &AuditEntry,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.begin_write().await?;
        let person = insert_person(&mut transaction, person).await?;
        let link = NewLink {
            person: Some(person.id.clone()),
            ..link
        };
        put_link(&mut transaction, &link, &entry.actor).await?;
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(person)
    }

    /// A link that still works. Looking at it does not use it up: programs that scan mail open links.
    pub async fn link(
        &self,
        purpose: LinkPurpose,
        sha256: &[u8; 32],
    ) -> Result<Option<StoredLink>, StoreError> {
        let one =
            format!("{COLUMNS} WHERE sha256 = $1 AND purpose = $2 AND expires > $3 AND {STANDS}");
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(hex(sha256))
            .bind(purpose.word())
            .bind(milliseconds_now())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(StoredLink::from_row).transpose()
    }

    /// Ends a link that has done its work.
    pub async fn end_link(
        &self,
        purpose: LinkPurpose,
        sha256: &[u8; 32],
    ) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM tokens WHERE sha256 = $1 AND purpose = $2")
            .bind(hex(sha256))
            .bind(purpose.word())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// The invitations that still work, the last one first.
    pub async fn invitations(&self) -> Result<Vec<StoredLink>, StoreError> {
        let all = format!(
            "{COLUMNS} WHERE purpose = $1 AND expires > $2 AND {STANDS} ORDER BY created DESC"
        );
        let rows = sqlx::query(AssertSqlSafe(all))
            .bind(LinkPurpose::Invite.word())
            .bind(milliseconds_now())
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredLink::from_row).collect()
    }

    /// Ends an invitation that was not used; with the id of a team only one to that.
    pub async fn withdraw_invitation(
        &self,
        id: &str,
        team: Option<&str>,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin_write().await?;
        let withdrawn = "DELETE FROM tokens WHERE id = $1 AND purpose = $2 AND used IS NULL \
             AND ($3 = '' OR account = $3)";
        let done = sqlx::query(withdrawn)
            .bind(id.to_owned())
            .bind(LinkPurpose::Invite.word())
            .bind(team.unwrap_or_default().to_owned())
            .execute(&mut *transaction)
            .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Sets a password by a link, once.
    pub async fn use_password_link(
        &self,
        purpose: LinkPurpose,
        sha256: &[u8; 32],
        password: &str,
        entry: &AuditEntry,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.begin_write().await?;
        let link = use_up(&mut transaction, purpose, sha256).await?;
        let person = link.person.ok_or(StoreError::LinkOver)?;
        let person = put_password(&mut transaction, &person, password).await?;
        if person.disabled.is_some() {
            return Err(StoreError::LinkOver);
        }
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(person)
    }

    /// Makes the address of a link that of its person, once.
    pub async fn use_verification(
        &self,
        sha256: &[u8; 32],
        entry: &AuditEntry,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.begin_write().await?;
        let link = use_up(&mut transaction, LinkPurpose::Verify, sha256).await?;
        let (Some(person), Some(email)) = (link.person, link.email) else {
            return Err(StoreError::LinkOver);
        };
        let person = put_verified(&mut transaction, &person, &email).await?;
        if person.disabled.is_some() {
            return Err(StoreError::LinkOver);
        }
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(person)
    }

    /// Creates the account of an invited person, once. The role is that of the invitation, as is the team.
    pub async fn use_invitation(
        &self,
        purpose: LinkPurpose,
        sha256: &[u8; 32],
        person: &NewPerson,
        entry: &AuditEntry,
    ) -> Result<Person, StoreError> {
        let mut transaction = self.begin_write().await?;
        let link = use_up(&mut transaction, purpose, sha256).await?;
        let person = NewPerson {
            role: link.role.ok_or(StoreError::Corrupt("role"))?,
            ..person.clone()
        };
        let person = insert_person(&mut transaction, &person).await?;
        if let Some(identity) = &link.identity {
            let email = link.email.as_deref();
            insert_identity(&mut transaction, &person.id, identity, email).await?;
        }
        if let Some(team) = &link.team {
            insert_member(&mut transaction, &team.id, &person.id, team.role).await?;
        }
        audit::append(&mut transaction, entry).await?;
        transaction.commit().await?;
        Ok(person)
    }
}

async fn put_link(
    transaction: &mut Transaction<'static, Any>,
    link: &NewLink,
    made_by: &str,
) -> Result<String, StoreError> {
    let now = milliseconds_now();
    let earlier = "DELETE FROM tokens WHERE used IS NULL AND \
         (expires <= $1 OR purpose = $2 AND $2 <> 'second_factor' AND (person = $3 OR $2 = 'sign_up' AND email = $4))";
    sqlx::query(earlier)
        .bind(now)
        .bind(link.purpose.word())
        .bind(link.person.clone())
        .bind(link.email.clone())
        .execute(&mut **transaction)
        .await?;
    let id = Uuid::now_v7().to_string();
    let identity = link.identity.as_ref();
    let insert = "INSERT INTO tokens (sha256, id, purpose, person, email, role, made_by, created, expires, issuer, subject, display, \
         account, account_role, sent) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
    sqlx::query(insert)
        .bind(hex(&link.sha256))
        .bind(id.clone())
        .bind(link.purpose.word())
        .bind(link.person.clone())
        .bind(link.email.clone())
        .bind(link.role.map(|role| role.word()))
        .bind(made_by.to_owned())
        .bind(now)
        .bind(link.expires)
        .bind(identity.map(|identity| identity.issuer.clone()))
        .bind(identity.map(|identity| identity.subject.clone()))
        .bind(link.display.clone())
        .bind(link.team.as_ref().map(|team| team.id.clone()))
        .bind(link.team.as_ref().map(|team| team.role.word()))
        .bind(i64::from(link.is_sent))
        .execute(&mut **transaction)
        .await?;
    Ok(id)
}

/// Marks a link as used; only one of several requests at once does.
pub(super) async fn use_up(
    transaction: &mut Transaction<'static, Any>,
    purpose: LinkPurpose,
    sha256: &[u8; 32],
) -> Result<StoredLink, StoreError> {
    let used = format!(
        "UPDATE tokens SET used = $1 WHERE sha256 = $2 AND purpose = $3 AND expires > $1 AND {STANDS}"
    );
    let used = sqlx::query(AssertSqlSafe(used))
        .bind(milliseconds_now())
        .bind(hex(sha256))
        .bind(purpose.word())
        .execute(&mut **transaction)
        .await?;
    if used.rows_affected() == 0 {
        return Err(StoreError::LinkOver);
    }
    let one = format!("{COLUMNS} WHERE sha256 = $1");
    let row = sqlx::query(AssertSqlSafe(one))
        .bind(hex(sha256))
        .fetch_one(&mut **transaction)
        .await?;
    StoredLink::from_row(&row)
}

impl StoredLink {
    pub(super) fn from_row(row: &AnyRow) -> Result<StoredLink, StoreError> {
        let role: Option<String> = row.try_get(4)?;
        let role = role.map(|role| PersonRole::from_word(&role).ok_or(StoreError::Corrupt("role")));
        Ok(StoredLink {
            id: row.try_get(0)?,
            person: row.try_get(2)?,
            email: row.try_get(3)?,
            role: role.transpose()?,
            made_by: row.try_get(5)?,
            created: row.try_get(6)?,
            expires: row.try_get(7)?,
            identity: match (row.try_get(8)?, row.try_get(9)?) {
                (Some(issuer), Some(subject)) => Some(ExternalIdentity { issuer, subject }),
                _ => None,
            },
            display: row.try_get(10)?,
            team: InvitedTeam::from_row(row)?,
            is_sent: row.try_get::<i64, _>(14)? != 0,
        })
    }
}

impl InvitedTeam {
    fn from_row(row: &AnyRow) -> Result<Option<InvitedTeam>, StoreError> {
        let id: Option<String> = row.try_get(11)?;
        let name: Option<String> = row.try_get(12)?;
        let role: Option<String> = row.try_get(13)?;
        match (id, name, role) {
            (Some(id), Some(name), Some(role)) => Ok(Some(InvitedTeam {
                id,
                name,
                role: MembershipRole::from_column(&role)?,
            })),
            _ => Ok(None),
        }
    }
}

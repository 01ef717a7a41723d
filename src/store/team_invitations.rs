//! Invitations to teams: seen by their owners and by whom they are for, and taken up by people who have an account.

use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::audit::{self, AuditEntry};
use super::database::{Store, milliseconds_now};
use super::error::StoreError;
use super::links::{COLUMNS, LinkPurpose, STANDS, StoredLink, use_up};
use super::memberships::{end_invitations, insert_member};
use super::people::Person;
use super::secrets::from_hex;

/// An invitation that stands, by what comes before it.
const OPEN: &str = "purpose = 'invite' AND account IS NOT NULL AND expires > $1 AND";

impl Store {
    /// The invitations to a team that still work, the last one first.
    pub async fn team_invitations(&self, team: &str) -> Result<Vec<StoredLink>, StoreError> {
        self.open_invitations("account", team).await
    }

    /// The invitations to teams that are for a proven address.
    pub async fn invitations_to(&self, email: &str) -> Result<Vec<StoredLink>, StoreError> {
        self.open_invitations("email", email).await
    }

    async fn open_invitations(
        &self,
        column: &'static str,
        value: &str,
    ) -> Result<Vec<StoredLink>, StoreError> {
        let some =
            format!("{COLUMNS} WHERE {OPEN} {column} = $2 AND {STANDS} ORDER BY created DESC");
        let rows = sqlx::query(AssertSqlSafe(some))
            .bind(milliseconds_now())
            .bind(value.to_owned())
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredLink::from_row).collect()
    }

    /// Puts a person into the team of an invitation by the hash of its token, once.
    pub async fn join_team(
        &self,
        sha256: &[u8; 32],
        person: &Person,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        join(&mut transaction, sha256, person).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// The same by the id of an invitation that is for the proven address of the person.
    pub async fn join_team_by_address(
        &self,
        id: &str,
        person: &Person,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        let sha256 = token_of(&mut transaction, id, person).await?;
        join(&mut transaction, &sha256, person).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }

    /// Ends an invitation that is for the proven address of a person, who does not want it.
    pub async fn decline_invitation(
        &self,
        id: &str,
        person: &Person,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin_write().await?;
        let sha256 = token_of(&mut transaction, id, person).await?;
        use_up(&mut transaction, LinkPurpose::Invite, &sha256).await?;
        audit::append(&mut transaction, entry).await?;
        Ok(transaction.commit().await?)
    }
}

async fn join(
    transaction: &mut Transaction<'static, Any>,
    sha256: &[u8; 32],
    person: &Person,
) -> Result<(), StoreError> {
    let link = use_up(transaction, LinkPurpose::Invite, sha256).await?;
    let team = link.team.ok_or(StoreError::LinkOver)?;
    insert_member(transaction, &team.id, &person.id, team.role).await?;
    end_invitations(transaction, &team.id, &person.id).await
}

/// The hash of the token of an invitation that is for the proven address of a person.
async fn token_of(
    transaction: &mut Transaction<'static, Any>,
    id: &str,
    person: &Person,
) -> Result<[u8; 32], StoreError> {
    let email = person.email.clone().filter(|_| person.verified.is_some());
    let email = email.ok_or(StoreError::LinkOver)?;
    let one = format!("SELECT sha256 FROM tokens WHERE {OPEN} id = $2 AND email = $3 AND {STANDS}");
    let row = sqlx::query(AssertSqlSafe(one))
        .bind(milliseconds_now())
        .bind(id.to_owned())
        .bind(email)
        .fetch_optional(&mut **transaction)
        .await?;
    let sha256: String = row.ok_or(StoreError::LinkOver)?.try_get(0)?;
    from_hex(&sha256).ok_or(StoreError::Corrupt("hash"))
}

//! Teams: who belongs to one, and what became of somebody who was added.

use serde::Serialize;

use super::CreatedInvitation;
use crate::store::StoredMember;

/// A person who belongs to a team.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct MemberView {
    /// The username.
    pub handle: String,
    pub display: String,
    /// `owner`, `member` or `viewer`.
    pub role: &'static str,
    /// The person is disabled, and cannot sign in.
    pub disabled: bool,
}

impl From<StoredMember> for MemberView {
    fn from(member: StoredMember) -> MemberView {
        MemberView {
            handle: member.handle,
            display: member.display,
            role: member.role.word(),
            disabled: member.is_disabled,
        }
    }
}

/// Somebody who was added to a team, or else was invited: one of both is null.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AddedMemberView {
    pub member: Option<MemberView>,
    pub invitation: Option<CreatedInvitation>,
}

/// A team that one has joined.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct MembershipView {
    pub account: String,
    /// `owner`, `member` or `viewer`.
    pub role: &'static str,
}

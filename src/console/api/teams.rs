//! `/accounts/{account}/members` and `/accounts/{account}/invitations`: teams.

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use serde::Deserialize;

use super::Body;
use crate::console::actor::ConsoleCall;
use crate::console::operations::{team_invitations, teams};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{
    AccountSpendingView, AddedMemberView, CreatedInvitation, InvitationView, MemberView,
    MembershipView,
};
use crate::store::MembershipRole;

fn role(word: Option<&str>) -> Result<MembershipRole, Refusal> {
    let word = word.unwrap_or("member");
    let role = MembershipRole::from_word(word);
    role.ok_or_else(|| InputProblem::TeamRole.into())
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TeamBody {
    /// The name; it follows the rules of usernames, and never changes.
    name: String,
    /// The username of the first owner. Absent: who makes the team.
    #[serde(default)]
    owner: String,
}

/// Makes a team; for administrators.
#[cfg_attr(test, utoipa::path(post, path = "/accounts", tag = "teams", request_body = TeamBody, responses((status = 201, body = AccountSpendingView), (status = 403, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn create_team(
    call: ConsoleCall,
    Body(body): Body<TeamBody>,
) -> Result<(StatusCode, Json<AccountSpendingView>), Refusal> {
    let team = teams::create_team(&call, &body.name, &body.owner).await?;
    Ok((StatusCode::CREATED, Json(team)))
}

/// Who belongs to a team, for everybody who does.
#[cfg_attr(test, utoipa::path(get, path = "/accounts/{account}/members", tag = "teams", params(("account" = String, Path)), responses((status = 200, body = [MemberView]), (status = 404, body = super::ApiRefusal))))]
pub async fn list_members(
    call: ConsoleCall,
    Path(account): Path<String>,
) -> Result<Json<Vec<MemberView>>, Refusal> {
    teams::list_members(&call, &account).await.map(Json)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MemberBody {
    /// A username, or an e-mail address.
    person: String,
    /// `owner`, `member` (if absent) or `viewer`.
    role: Option<String>,
}

/// Adds somebody to a team; for its owners. A username is added at once. An e-mail address is invited, whether somebody has it or not;
/// only administrators add who has proven it.
#[cfg_attr(test, utoipa::path(post, path = "/accounts/{account}/members", tag = "teams", params(("account" = String, Path)), request_body = MemberBody, responses((status = 201, body = AddedMemberView), (status = 202, description = "The address is invited", body = AddedMemberView), (status = 400, body = super::ApiRefusal), (status = 403, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn add_member(
    call: ConsoleCall,
    Path(account): Path<String>,
    Body(body): Body<MemberBody>,
) -> Result<(StatusCode, Json<AddedMemberView>), Refusal> {
    let role = role(body.role.as_deref())?;
    let added = teams::add_member(&call, &account, &body.person, role).await?;
    let status = match added.member {
        Some(_) => StatusCode::CREATED,
        None => StatusCode::ACCEPTED,
    };
    Ok((status, Json(added)))
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MemberEditBody {
    /// `owner`, `member` or `viewer`.
    role: String,
}

/// Changes what somebody may do in a team; for its owners. The last owner stays one, unless an administrator decides.
#[cfg_attr(test, utoipa::path(patch, path = "/accounts/{account}/members/{handle}", tag = "teams", params(("account" = String, Path), ("handle" = String, Path)), request_body = MemberEditBody, responses((status = 200, body = MemberView), (status = 403, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn change_member(
    call: ConsoleCall,
    Path((account, handle)): Path<(String, String)>,
    Body(body): Body<MemberEditBody>,
) -> Result<Json<MemberView>, Refusal> {
    let role = role(Some(&body.role))?;
    let changed = teams::change_member(&call, &account, &handle, role);
    changed.await.map(Json)
}

/// Removes somebody from a team; for its owners, and for everybody the own membership.
#[cfg_attr(test, utoipa::path(delete, path = "/accounts/{account}/members/{handle}", tag = "teams", params(("account" = String, Path), ("handle" = String, Path)), responses((status = 204), (status = 403, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn remove_member(
    call: ConsoleCall,
    Path((account, handle)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    teams::remove_member(&call, &account, &handle).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The invitations to a team that still work; for its owners.
#[cfg_attr(test, utoipa::path(get, path = "/accounts/{account}/invitations", tag = "teams", params(("account" = String, Path)), responses((status = 200, body = [InvitationView]), (status = 403, body = super::ApiRefusal))))]
pub async fn list_team_invitations(
    call: ConsoleCall,
    Path(account): Path<String>,
) -> Result<Json<Vec<InvitationView>>, Refusal> {
    let invitations = team_invitations::list_team_invitations(&call, &account);
    invitations.await.map(Json)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TeamInviteBody {
    /// Where the console sends mail, it is sent there, and only administrators see the link.
    #[serde(default)]
    email: String,
    /// `owner`, `member` (if absent) or `viewer`.
    role: Option<String>,
}

/// Makes an invitation to a team; for its owners.
#[cfg_attr(test, utoipa::path(post, path = "/accounts/{account}/invitations", tag = "teams", params(("account" = String, Path)), request_body = TeamInviteBody, responses((status = 201, body = CreatedInvitation), (status = 403, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn invite_to_team(
    call: ConsoleCall,
    Path(account): Path<String>,
    Body(body): Body<TeamInviteBody>,
) -> Result<(StatusCode, Json<CreatedInvitation>), Refusal> {
    let role = role(body.role.as_deref())?;
    let invited = team_invitations::invite_to_team(&call, &account, &body.email, role);
    Ok((StatusCode::CREATED, Json(invited.await?)))
}

/// Ends an invitation to a team; for its owners.
#[cfg_attr(test, utoipa::path(delete, path = "/accounts/{account}/invitations/{id}", tag = "teams", params(("account" = String, Path), ("id" = String, Path)), responses((status = 204), (status = 404, body = super::ApiRefusal))))]
pub async fn withdraw_from_team(
    call: ConsoleCall,
    Path((account, id)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    team_invitations::withdraw_from_team(&call, &account, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinBody {
    /// The last part of the link.
    token: String,
}

/// Joins the team of an invitation with one's own account. (`/invitations/accept` makes one.)
#[cfg_attr(test, utoipa::path(post, path = "/invitations/join", tag = "teams", request_body = JoinBody, responses((status = 200, body = MembershipView), (status = 409, body = super::ApiRefusal), (status = 410, body = super::ApiRefusal))))]
pub async fn join_team(
    call: ConsoleCall,
    Body(body): Body<JoinBody>,
) -> Result<Json<MembershipView>, Refusal> {
    let joined = team_invitations::join_team(&call, &body.token);
    joined.await.map(Json)
}

/// The invitations to teams that are for one's own proven e-mail address.
#[cfg_attr(test, utoipa::path(get, path = "/me/invitations", tag = "teams", responses((status = 200, body = [InvitationView]))))]
pub async fn list_own_invitations(call: ConsoleCall) -> Result<Json<Vec<InvitationView>>, Refusal> {
    let invitations = team_invitations::list_own_invitations(&call);
    invitations.await.map(Json)
}

/// Joins a team that one's own proven e-mail address was invited to.
#[cfg_attr(test, utoipa::path(post, path = "/me/invitations/{id}", tag = "teams", params(("id" = String, Path)), responses((status = 200, body = MembershipView), (status = 404, body = super::ApiRefusal))))]
pub async fn take_up_invitation(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<Json<MembershipView>, Refusal> {
    let joined = team_invitations::take_up_invitation(&call, &id);
    joined.await.map(Json)
}

/// Ends such an invitation.
#[cfg_attr(test, utoipa::path(delete, path = "/me/invitations/{id}", tag = "teams", params(("id" = String, Path)), responses((status = 204), (status = 404, body = super::ApiRefusal))))]
pub async fn decline_invitation(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    team_invitations::decline_invitation(&call, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

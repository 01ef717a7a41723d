//! `/people` and `/invitations`.

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::Body;
use super::session::{SessionResponse, with_cookie};
use crate::console::actor::{Actor, ConsoleCall};
use crate::console::operations::people::{self, PersonEdit, PersonInput};
use crate::console::operations::{invitations, sign_up};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{CreatedInvitation, InvitationView, LinkView, PersonView};
use crate::store::PersonRole;

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PersonBody {
    /// The username; it never changes.
    handle: String,
    #[serde(default)]
    display: String,
    #[serde(default)]
    email: String,
    /// Of the account that one makes for oneself.
    password: Option<String>,
    /// Of an account that an administrator makes: `admin`, `member` or `viewer`.
    role: Option<String>,
}

fn role(word: Option<&str>) -> Result<Option<PersonRole>, Refusal> {
    let role = word.map(|word| PersonRole::from_word(word).ok_or(InputProblem::Role));
    Ok(role.transpose()?)
}

/// All people; for administrators.
#[cfg_attr(test, utoipa::path(get, path = "/people", tag = "people", responses((status = 200, body = [PersonView]), (status = 403, body = super::ApiRefusal))))]
pub async fn list_people(call: ConsoleCall) -> Result<Json<Vec<PersonView>>, Refusal> {
    people::list_people(&call).await.map(Json)
}

/// Makes an account: for oneself where `console.sign_up` is `open` and no mail is sent (else see `/sign-up`), or as an administrator for somebody else, who
/// chooses a password by the link of the response.
#[cfg_attr(test, utoipa::path(post, path = "/people", tag = "people", request_body = PersonBody, responses((status = 201, body = crate::console::views::CreatedPerson), (status = 403, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn create_person(
    call: ConsoleCall,
    Body(body): Body<PersonBody>,
) -> Result<Response, Refusal> {
    let input = PersonInput {
        handle: body.handle,
        display: body.display,
        email: body.email,
    };
    if let (Actor::Anonymous, Some(password)) = (&call.actor, &body.password) {
        let begun = sign_up::sign_up(&call, input, password).await?;
        return Ok(with_cookie(&call, begun, StatusCode::CREATED).into_response());
    }
    let role = role(body.role.as_deref())?.unwrap_or(PersonRole::Member);
    let created = people::create_person(&call, input, role).await?;
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

#[cfg_attr(test, utoipa::path(get, path = "/people/{id}", tag = "people", params(("id" = String, Path)), responses((status = 200, body = PersonView), (status = 404, body = super::ApiRefusal))))]
pub async fn get_person(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<Json<PersonView>, Refusal> {
    people::get_person(&call, &id).await.map(Json)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PersonEditBody {
    display: Option<String>,
    email: Option<String>,
    role: Option<String>,
    /// Ends all sessions, and all keys of the account.
    disabled: Option<bool>,
}

/// Changes somebody; for administrators.
#[cfg_attr(test, utoipa::path(patch, path = "/people/{id}", tag = "people", params(("id" = String, Path)), request_body = PersonEditBody, responses((status = 200, body = PersonView), (status = 403, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn change_person(
    call: ConsoleCall,
    Path(id): Path<String>,
    Body(body): Body<PersonEditBody>,
) -> Result<Json<PersonView>, Refusal> {
    let edit = PersonEdit {
        display: body.display,
        email: body.email,
        role: role(body.role.as_deref())?,
        disabled: body.disabled,
    };
    people::change_person(&call, &id, edit).await.map(Json)
}

/// Makes a new link for somebody to choose a password; for administrators.
#[cfg_attr(test, utoipa::path(post, path = "/people/{id}/link", tag = "people", params(("id" = String, Path)), responses((status = 201, body = LinkView), (status = 403, body = super::ApiRefusal))))]
pub async fn create_setup_link(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<LinkView>), Refusal> {
    let link = people::create_setup_link(&call, &id).await?;
    Ok((StatusCode::CREATED, Json(link)))
}

/// The invitations that still work; for administrators.
#[cfg_attr(test, utoipa::path(get, path = "/invitations", tag = "people", responses((status = 200, body = [InvitationView]))))]
pub async fn list_invitations(call: ConsoleCall) -> Result<Json<Vec<InvitationView>>, Refusal> {
    invitations::list_invitations(&call).await.map(Json)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct InviteBody {
    /// The account will have this e-mail address.
    #[serde(default)]
    email: String,
    role: Option<String>,
}

/// Makes an invitation; for administrators.
#[cfg_attr(test, utoipa::path(post, path = "/invitations", tag = "people", request_body = InviteBody, responses((status = 201, body = CreatedInvitation))))]
pub async fn invite(
    call: ConsoleCall,
    Body(body): Body<InviteBody>,
) -> Result<(StatusCode, Json<CreatedInvitation>), Refusal> {
    let role = role(body.role.as_deref())?.unwrap_or(PersonRole::Member);
    let created = invitations::invite(&call, &body.email, role).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Ends an invitation; for administrators.
#[cfg_attr(test, utoipa::path(delete, path = "/invitations/{id}", tag = "people", params(("id" = String, Path)), responses((status = 204), (status = 404, body = super::ApiRefusal))))]
pub async fn withdraw(call: ConsoleCall, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    invitations::withdraw(&call, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AcceptBody {
    /// The last part of the link.
    token: String,
    handle: String,
    #[serde(default)]
    display: String,
    #[serde(default)]
    email: String,
    password: String,
}

/// Makes the account of an invitation, and signs in.
#[cfg_attr(test, utoipa::path(post, path = "/invitations/accept", tag = "people", request_body = AcceptBody, responses((status = 201, body = PersonView), (status = 410, body = super::ApiRefusal))))]
pub async fn accept(
    call: ConsoleCall,
    Body(body): Body<AcceptBody>,
) -> Result<SessionResponse, Refusal> {
    let input = PersonInput {
        handle: body.handle,
        display: body.display,
        email: body.email,
    };
    let begun = invitations::accept(&call, &body.token, input, &body.password).await?;
    Ok(with_cookie(&call, begun, StatusCode::CREATED))
}

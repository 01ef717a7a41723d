//! `/session`, `/reset` and `/me`.

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum_extra::extract::CookieJar;
use serde::{Deserialize, Serialize};

use super::Body;
use crate::console::actor::ConsoleCall;
use crate::console::operations::session::{Begun, Entered};
use crate::console::operations::{people, reset, session, sign_up, verification};
use crate::console::refusal::Refusal;
use crate::console::sessions::{ended_cookie, pending_cookie, session_cookie};
use crate::console::views::{PersonView, SessionView};

/// A session that has begun: the person, with the cookie of the session.
pub(super) type SessionResponse = (StatusCode, CookieJar, Json<PersonView>);

pub(super) fn with_cookie(call: &ConsoleCall, begun: Begun, status: StatusCode) -> SessionResponse {
    let cookie = session_cookie(&call.console.settings, begun.token);
    (status, CookieJar::new().add(cookie), Json(begun.person))
}

/// The password is right, and a code of the second factor comes next, to `/session/totp`.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct CodeNeeded {
    second_factor: bool,
}

/// A session, or the cookie of a sign-in that waits for a code.
fn entered(call: &ConsoleCall, entered: Entered) -> Response {
    match entered {
        Entered::Session(begun) => with_cookie(call, begun, StatusCode::CREATED).into_response(),
        Entered::CodeNeeded(token) => {
            let cookie = pending_cookie(&call.console.settings, token);
            let body = CodeNeeded {
                second_factor: true,
            };
            (
                StatusCode::ACCEPTED,
                CookieJar::new().add(cookie),
                Json(body),
            )
                .into_response()
        }
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SignInBody {
    /// A username or an e-mail address.
    login: String,
    password: String,
}

/// Who is signed in.
#[cfg_attr(test, utoipa::path(get, path = "/session", tag = "session", responses((status = 200, body = PersonView), (status = 401, body = super::ApiRefusal))))]
pub async fn current(call: ConsoleCall) -> Result<Json<PersonView>, Refusal> {
    session::current(&call).await.map(Json)
}

/// Signs in; a person with a second factor enters a code next.
#[cfg_attr(test, utoipa::path(post, path = "/session", tag = "session", request_body = SignInBody, responses((status = 201, body = PersonView), (status = 202, body = CodeNeeded), (status = 401, body = super::ApiRefusal), (status = 429, body = super::ApiRefusal))))]
pub async fn sign_in(call: ConsoleCall, Body(body): Body<SignInBody>) -> Result<Response, Refusal> {
    let signed_in = session::sign_in(&call, &body.login, &body.password).await?;
    Ok(entered(&call, signed_in))
}

/// Signs out.
#[cfg_attr(test, utoipa::path(delete, path = "/session", tag = "session", responses((status = 204))))]
pub async fn sign_out(call: ConsoleCall) -> Result<(StatusCode, CookieJar), Refusal> {
    session::sign_out(&call).await?;
    let cookie = ended_cookie(&call.console.settings);
    Ok((StatusCode::NO_CONTENT, CookieJar::new().add(cookie)))
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PasswordBody {
    password: String,
}

/// Enters the password again, for what needs it (`confirm_password`).
#[cfg_attr(test, utoipa::path(post, path = "/session/confirmation", tag = "session", request_body = PasswordBody, responses((status = 204), (status = 401, body = super::ApiRefusal))))]
pub async fn confirm_password(
    call: ConsoleCall,
    Body(body): Body<PasswordBody>,
) -> Result<StatusCode, Refusal> {
    session::confirm_password(&call, &body.password).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ResetBody {
    /// A username or an e-mail address.
    login: String,
}

/// Sends a link to choose another password, if there is an account with a verified address.
#[cfg_attr(test, utoipa::path(post, path = "/reset", tag = "session", request_body = ResetBody, responses((status = 202), (status = 404, body = super::ApiRefusal), (status = 429, body = super::ApiRefusal))))]
pub async fn request_reset(
    call: ConsoleCall,
    Body(body): Body<ResetBody>,
) -> Result<StatusCode, Refusal> {
    reset::request_reset(&call, &body.login).await?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AddressBody {
    email: String,
}

/// Sends a link to make an account, where `console.sign_up` lets people make their own and mail is sent.
#[cfg_attr(test, utoipa::path(post, path = "/sign-up", tag = "session", request_body = AddressBody, responses((status = 202), (status = 403, body = super::ApiRefusal), (status = 429, body = super::ApiRefusal))))]
pub async fn request_sign_up(
    call: ConsoleCall,
    Body(body): Body<AddressBody>,
) -> Result<StatusCode, Refusal> {
    sign_up::request_sign_up(&call, &body.email).await?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct VerificationBody {
    /// The last part of the link.
    token: String,
}

/// Proves an address by the link that was sent to it.
#[cfg_attr(test, utoipa::path(post, path = "/verification", tag = "session", request_body = VerificationBody, responses((status = 204), (status = 410, body = super::ApiRefusal))))]
pub async fn verify(
    call: ConsoleCall,
    Body(body): Body<VerificationBody>,
) -> Result<StatusCode, Refusal> {
    verification::verify(&call, &body.token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends the link that proves one's own address once more.
#[cfg_attr(test, utoipa::path(post, path = "/me/verification", tag = "me", responses((status = 202), (status = 400, body = super::ApiRefusal), (status = 429, body = super::ApiRefusal))))]
pub async fn request_verification(call: ConsoleCall) -> Result<StatusCode, Refusal> {
    verification::request_verification(&call).await?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ChoosePasswordBody {
    /// The last part of the link.
    token: String,
    password: String,
}

/// Chooses a password by a link, and signs in.
#[cfg_attr(test, utoipa::path(put, path = "/reset", tag = "session", request_body = ChoosePasswordBody, responses((status = 201, body = PersonView), (status = 202, body = CodeNeeded), (status = 410, body = super::ApiRefusal))))]
pub async fn choose_password(
    call: ConsoleCall,
    Body(body): Body<ChoosePasswordBody>,
) -> Result<Response, Refusal> {
    let chosen = people::use_setup_link(&call, &body.token, &body.password).await?;
    Ok(entered(&call, chosen))
}

/// Oneself.
#[cfg_attr(test, utoipa::path(get, path = "/me", tag = "me", responses((status = 200, body = PersonView))))]
pub async fn get_me(call: ConsoleCall) -> Result<Json<PersonView>, Refusal> {
    session::current(&call).await.map(Json)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MeBody {
    display: Option<String>,
    /// Empty: none.
    email: Option<String>,
}

/// Changes the name that others see, and the e-mail address.
#[cfg_attr(test, utoipa::path(patch, path = "/me", tag = "me", request_body = MeBody, responses((status = 200, body = PersonView), (status = 400, body = super::ApiRefusal))))]
pub async fn change_me(
    call: ConsoleCall,
    Body(body): Body<MeBody>,
) -> Result<Json<PersonView>, Refusal> {
    let edit = people::PersonEdit {
        display: body.display,
        email: body.email,
        ..people::PersonEdit::default()
    };
    people::change_me(&call, edit).await.map(Json)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct NewPasswordBody {
    old: String,
    new: String,
}

/// Changes the password; every other session ends.
#[cfg_attr(test, utoipa::path(put, path = "/me/password", tag = "me", request_body = NewPasswordBody, responses((status = 200, body = PersonView), (status = 401, body = super::ApiRefusal))))]
pub async fn change_password(
    call: ConsoleCall,
    Body(body): Body<NewPasswordBody>,
) -> Result<SessionResponse, Refusal> {
    let begun = people::change_password(&call, &body.old, &body.new).await?;
    Ok(with_cookie(&call, begun, StatusCode::OK))
}

/// One's own sessions.
#[cfg_attr(test, utoipa::path(get, path = "/me/sessions", tag = "me", responses((status = 200, body = [SessionView]))))]
pub async fn list_sessions(call: ConsoleCall) -> Result<Json<Vec<SessionView>>, Refusal> {
    session::list_sessions(&call).await.map(Json)
}

/// Ends one of one's own sessions.
#[cfg_attr(test, utoipa::path(delete, path = "/me/sessions/{id}", tag = "me", params(("id" = String, Path)), responses((status = 204), (status = 404, body = super::ApiRefusal))))]
pub async fn end_session(call: ConsoleCall, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    session::end_session(&call, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! `/session/totp` and `/me/totp`.

use axum::Json;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum_extra::extract::CookieJar;
use serde::{Deserialize, Serialize};

use super::Body;
use super::session::{SessionResponse, with_cookie};
use crate::console::actor::ConsoleCall;
use crate::console::operations::second_factor;
use crate::console::refusal::Refusal;
use crate::console::sessions::{pending_token, session_cookie};
use crate::console::views::{PersonView, SecondFactorSetup, SecondFactorView};

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CodeBody {
    /// Six digits, or a recovery code where one signs in.
    code: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct RecoveryCodes {
    /// They are in this response and in no other.
    recovery_codes: Vec<String>,
}

/// Enters the code after the password, and signs in.
#[cfg_attr(test, utoipa::path(post, path = "/session/totp", tag = "session", request_body = CodeBody, responses((status = 201, body = PersonView), (status = 401, body = super::ApiRefusal), (status = 410, body = super::ApiRefusal), (status = 429, body = super::ApiRefusal))))]
pub async fn enter_code(
    call: ConsoleCall,
    headers: HeaderMap,
    Body(body): Body<CodeBody>,
) -> Result<SessionResponse, Refusal> {
    let pending = pending_token(&call.console.settings, &headers);
    let begun = second_factor::enter_code(&call, &pending, &body.code).await?;
    Ok(with_cookie(&call, begun, StatusCode::CREATED))
}

/// One's own second factor.
#[cfg_attr(test, utoipa::path(get, path = "/me/totp", tag = "me", responses((status = 200, body = SecondFactorView))))]
pub async fn get_second_factor(call: ConsoleCall) -> Result<Json<SecondFactorView>, Refusal> {
    second_factor::get_second_factor(&call).await.map(Json)
}

/// Makes the secret that an app reads.
#[cfg_attr(test, utoipa::path(post, path = "/me/totp", tag = "me", responses((status = 201, body = SecondFactorSetup), (status = 403, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn begin_setup(
    call: ConsoleCall,
) -> Result<(StatusCode, Json<SecondFactorSetup>), Refusal> {
    let setup = second_factor::begin_setup(&call).await?;
    Ok((StatusCode::CREATED, Json(setup)))
}

/// Turns the second factor on with a code of the new secret; all other sessions end.
#[cfg_attr(test, utoipa::path(put, path = "/me/totp", tag = "me", request_body = CodeBody, responses((status = 200, body = RecoveryCodes), (status = 401, body = super::ApiRefusal))))]
pub async fn confirm_setup(
    call: ConsoleCall,
    Body(body): Body<CodeBody>,
) -> Result<(CookieJar, Json<RecoveryCodes>), Refusal> {
    let on = second_factor::confirm_setup(&call, &body.code).await?;
    let cookie = session_cookie(&call.console.settings, on.begun.token);
    let recovery_codes = on.recovery_codes;
    Ok((
        CookieJar::new().add(cookie),
        Json(RecoveryCodes { recovery_codes }),
    ))
}

/// Turns one's own second factor off; all other sessions end.
#[cfg_attr(test, utoipa::path(delete, path = "/me/totp", tag = "me", responses((status = 200, body = PersonView), (status = 403, body = super::ApiRefusal))))]
pub async fn turn_off(call: ConsoleCall) -> Result<SessionResponse, Refusal> {
    let begun = second_factor::turn_off(&call).await?;
    Ok(with_cookie(&call, begun, StatusCode::OK))
}

/// Makes new recovery codes; the old ones end.
#[cfg_attr(test, utoipa::path(post, path = "/me/totp/recovery", tag = "me", responses((status = 201, body = RecoveryCodes), (status = 404, body = super::ApiRefusal))))]
pub async fn replace_recovery_codes(
    call: ConsoleCall,
) -> Result<(StatusCode, Json<RecoveryCodes>), Refusal> {
    let recovery_codes = second_factor::replace_recovery_codes(&call).await?;
    Ok((StatusCode::CREATED, Json(RecoveryCodes { recovery_codes })))
}

/// Removes the second factor of somebody who has lost it; for administrators.
#[cfg_attr(test, utoipa::path(delete, path = "/people/{id}/totp", tag = "people", params(("id" = String, Path)), responses((status = 200, body = PersonView), (status = 403, body = super::ApiRefusal))))]
pub async fn remove_second_factor(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<Json<PersonView>, Refusal> {
    let removed = second_factor::remove_second_factor(&call, &id).await;
    removed.map(Json)
}

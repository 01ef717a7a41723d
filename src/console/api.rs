//! The JSON API under `/api/v1`: inputs from JSON, views to JSON, refusals with a code.

mod accounts;
mod administration;
mod alerts;
mod catalog;
#[cfg(test)]
mod description;
mod fidelity;
mod home;
mod identity;
mod inspect;
mod keys;
mod people;
mod play;
mod second_factor;
mod session;
mod teams;
mod translate;
mod usage;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, patch, post, put};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::refusal::{InputProblem, Refusal};
use super::security;
use super::state::Console;
use super::texts::ENGLISH;
use crate::model::Money;

/// The routes; description.rs describes each of them.
pub fn routes() -> Router<Arc<Console>> {
    let api = session_routes()
        .merge(people_routes())
        .merge(key_routes())
        .merge(gateway_routes());
    Router::new()
        .nest("/api/v1", api)
        .route(
            "/api/{*rest}",
            axum::routing::any(async || Refusal::NotFound),
        )
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED)
}

/// Signing in and up, and what concerns oneself.
fn session_routes() -> Router<Arc<Console>> {
    Router::new()
        .route(
            "/session",
            get(session::current)
                .post(session::sign_in)
                .delete(session::sign_out),
        )
        .route("/session/confirmation", post(session::confirm_password))
        .route("/session/totp", post(second_factor::enter_code))
        .route("/providers", get(identity::list_providers))
        .route("/me/identities", get(identity::list_identities))
        .route("/me/identities/{id}", delete(identity::unlink))
        .route(
            "/me/totp",
            get(second_factor::get_second_factor)
                .post(second_factor::begin_setup)
                .put(second_factor::confirm_setup)
                .delete(second_factor::turn_off),
        )
        .route(
            "/me/totp/recovery",
            post(second_factor::replace_recovery_codes),
        )
        .route(
            "/reset",
            post(session::request_reset).put(session::choose_password),
        )
        .route("/sign-up", post(session::request_sign_up))
        .route("/verification", post(session::verify))
        .route("/me/verification", post(session::request_verification))
        .route("/me", get(session::get_me).patch(session::change_me))
        .route("/me/password", put(session::change_password))
        .route("/me/sessions", get(session::list_sessions))
        .route("/me/sessions/{id}", delete(session::end_session))
}

/// Others, and invitations.
fn people_routes() -> Router<Arc<Console>> {
    Router::new()
        .route(
            "/people/{id}/totp",
            delete(second_factor::remove_second_factor),
        )
        .route(
            "/people",
            get(people::list_people).post(people::create_person),
        )
        .route(
            "/people/{id}",
            get(people::get_person).patch(people::change_person),
        )
        .route("/people/{id}/link", post(people::create_setup_link))
        .route(
            "/invitations",
            get(people::list_invitations).post(people::invite),
        )
        .route("/invitations/{id}", delete(people::withdraw))
        .route("/invitations/accept", post(people::accept))
        .merge(team_routes())
}

/// Who belongs to teams, and who is invited to them.
fn team_routes() -> Router<Arc<Console>> {
    Router::new()
        .route(
            "/accounts/{account}/members",
            get(teams::list_members).post(teams::add_member),
        )
        .route(
            "/accounts/{account}/members/{handle}",
            patch(teams::change_member).delete(teams::remove_member),
        )
        .route(
            "/accounts/{account}/invitations",
            get(teams::list_team_invitations).post(teams::invite_to_team),
        )
        .route(
            "/accounts/{account}/invitations/{id}",
            delete(teams::withdraw_from_team),
        )
        .route("/invitations/join", post(teams::join_team))
        .route("/me/invitations", get(teams::list_own_invitations))
        .route(
            "/me/invitations/{id}",
            post(teams::take_up_invitation).delete(teams::decline_invitation),
        )
}

/// Accounts, their keys, and what is done with them.
fn key_routes() -> Router<Arc<Console>> {
    Router::new()
        .route(
            "/accounts",
            get(accounts::list_accounts).post(teams::create_team),
        )
        .route(
            "/accounts/{account}",
            get(accounts::get_account).patch(accounts::change_account),
        )
        .route("/config/keys", get(keys::list_config_keys))
        .route(
            "/accounts/{account}/keys",
            get(keys::list_keys).post(keys::create_key),
        )
        .route(
            "/keys/{id}",
            get(keys::get_key)
                .patch(keys::change_key)
                .delete(keys::revoke_key),
        )
        .route("/keys/{id}/rotate", post(keys::rotate_key))
        .route(
            "/keys/{id}/inspection",
            post(inspect::start_inspection).delete(inspect::end_inspection),
        )
        .route("/inspections/{id}", get(inspect::get_inspection))
        .route(
            "/inspections/{id}/requests/{number}",
            get(inspect::get_capture),
        )
        .route(
            "/alerts",
            get(alerts::list_alerts).post(alerts::create_alert),
        )
        .route(
            "/alerts/{id}",
            patch(alerts::change_alert).delete(alerts::delete_alert),
        )
        .route("/alerts/{id}/test", post(alerts::test_alert))
        .route("/play", get(play::list_options).post(play::play))
}

/// What the gateway did, and can do.
fn gateway_routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/usage", get(usage::get_usage))
        .route("/requests", get(usage::list_requests))
        .route("/requests/{id}", get(usage::get_request))
        .route("/audit", get(administration::list_changes))
        .route("/upstreams", get(administration::list_upstreams))
        .route("/config", get(administration::get_config))
        .route("/home", get(home::get_home))
        .route("/models", get(catalog::list_models))
        .route("/fidelity", get(fidelity::get_fidelity))
        .merge(
            Router::new()
                .route("/translate", post(translate::translate))
                .layer(security::explorer_limit()),
        )
}

/// Why an operation was refused.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct ApiRefusal {
    error: RefusalBody,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
struct RefusalBody {
    /// A word for programs.
    code: &'static str,
    /// The field of the input that cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'static str>,
    message: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = ApiRefusal {
            error: RefusalBody {
                code: self.code(),
                field: match &self {
                    Refusal::Invalid(problem) => Some(problem.field()),
                    _ => None,
                },
                message: ENGLISH.refusal(&self),
            },
        };
        let status = StatusCode::from_u16(self.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(body)).into_response();
        if let Refusal::TooManyAttempts(wait) = self {
            let seconds = HeaderValue::from(wait.as_secs() + 1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

/// A JSON body, refused like everything else when it is none.
struct Body<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Refusal> {
        let read = axum::Json::from_request(request, state).await;
        match read {
            Ok(axum::Json(body)) => Ok(Body(body)),
            Err(rejection) => Err(InputProblem::Body(rejection.body_text()).into()),
        }
    }
}

/// An amount, as a number or as text.
fn amount(number: &RawValue) -> Result<Money, InputProblem> {
    let text = number.get().trim_matches('"');
    Money::parse(text).ok_or(InputProblem::Cap)
}

/// A field that may be absent, or null: `None`, or `Some(None)`.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    input: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(input).map(Some)
}

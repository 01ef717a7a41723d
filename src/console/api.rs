//! The JSON API under `/api/v1`: inputs from JSON, views to JSON, refusals with a code.

mod accounts;
mod administration;
mod catalog;
mod home;
mod identity;
mod inspect;
mod keys;
mod people;
mod play;
mod second_factor;
mod session;
mod translate;
mod usage;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi;
use super::refusal::{InputProblem, Refusal};
use super::security;
use super::state::Console;
use super::texts::ENGLISH;
use crate::model::Money;

/// The routes, and their description.
pub fn routes() -> (Router<Arc<Console>>, OpenApi) {
    let api = OpenApiRouter::new()
        .routes(routes!(
            session::current,
            session::sign_in,
            session::sign_out
        ))
        .routes(routes!(session::confirm_password))
        .routes(routes!(second_factor::enter_code))
        .routes(routes!(identity::list_providers))
        .routes(routes!(identity::list_identities))
        .routes(routes!(identity::unlink))
        .routes(routes!(
            second_factor::get_second_factor,
            second_factor::begin_setup,
            second_factor::confirm_setup,
            second_factor::turn_off
        ))
        .routes(routes!(second_factor::replace_recovery_codes))
        .routes(routes!(second_factor::remove_second_factor))
        .routes(routes!(session::request_reset, session::choose_password))
        .routes(routes!(session::request_sign_up))
        .routes(routes!(session::verify))
        .routes(routes!(session::request_verification))
        .routes(routes!(session::get_me, session::change_me))
        .routes(routes!(session::change_password))
        .routes(routes!(session::list_sessions))
        .routes(routes!(session::end_session))
        .routes(routes!(people::list_people, people::create_person))
        .routes(routes!(people::get_person, people::change_person))
        .routes(routes!(people::create_setup_link))
        .routes(routes!(people::list_invitations, people::invite))
        .routes(routes!(people::withdraw))
        .routes(routes!(people::accept))
        .routes(routes!(accounts::list_accounts))
        .routes(routes!(accounts::get_account, accounts::change_account))
        .routes(routes!(keys::list_config_keys))
        .routes(routes!(keys::list_keys, keys::create_key))
        .routes(routes!(keys::get_key, keys::change_key, keys::revoke_key))
        .routes(routes!(keys::rotate_key))
        .routes(routes!(inspect::start_inspection, inspect::end_inspection))
        .routes(routes!(inspect::get_inspection))
        .routes(routes!(inspect::get_capture))
        .routes(routes!(play::list_options, play::play))
        .routes(routes!(usage::get_usage))
        .routes(routes!(usage::list_requests))
        .routes(routes!(usage::get_request))
        .routes(routes!(administration::list_changes))
        .routes(routes!(administration::list_upstreams))
        .routes(routes!(administration::get_config))
        .routes(routes!(home::get_home))
        .routes(routes!(catalog::list_models))
        .merge(
            OpenApiRouter::new()
                .routes(routes!(translate::translate))
                .layer(security::explorer_limit()),
        );
    let (router, description) = OpenApiRouter::with_openapi(openapi::description())
        .nest("/api/v1", api)
        .split_for_parts();
    let router = router
        .route(
            "/api/{*rest}",
            axum::routing::any(async || Refusal::NotFound),
        )
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED);
    (router, description)
}

/// Why an operation was refused.
#[derive(Serialize, ToSchema)]
struct ApiRefusal {
    error: RefusalBody,
}

#[derive(Serialize, ToSchema)]
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
fn amount(number: Box<RawValue>) -> Result<Money, InputProblem> {
    let text = number.get().trim_matches('"');
    Money::parse(text).ok_or(InputProblem::Cap)
}

/// A field that may be absent, or null: `None`, or `Some(None)`.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    input: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(input).map(Some)
}

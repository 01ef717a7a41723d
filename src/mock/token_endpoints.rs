//! The endpoints of clouds that give out credentials, for the presets that fetch them.

use std::time::{Duration, SystemTime};

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::header;
use serde_json::json;

use super::response::JSON;

/// What every credential begins with, so that tests can look for it in logs.
const PREFIX: &str = "mock-credential";

/// How long they are valid.
const LIFE: Duration = Duration::from_secs(3600);

/// Makes the routes: Google's and Microsoft's token endpoints, the metadata services of both, and STS of AWS.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/token", post(access_token))
        .route("/{tenant}/oauth2/v2.0/token", post(access_token))
        .route("/metadata/identity/oauth2/token", get(access_token))
        .route(
            "/computeMetadata/v1/instance/service-accounts/default/token",
            get(access_token),
        )
        .route("/", post(session_credentials))
}

async fn access_token() -> Response {
    let token = json!({
        "access_token": format!("{PREFIX}-token"), "expires_in": LIFE.as_secs(), "token_type": "Bearer",
    });
    let headers = [
        (header::CONTENT_TYPE.as_str(), JSON),
        ("metadata-flavor", "Google"),
    ];
    (headers, token.to_string()).into_response()
}

/// Credentials of a role.
async fn session_credentials() -> Response {
    let end = jiff::Timestamp::try_from(SystemTime::now() + LIFE).unwrap_or_default();
    let credentials = format!(
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAMOCK</AccessKeyId>\
         <SecretAccessKey>{PREFIX}-secret</SecretAccessKey><SessionToken>{PREFIX}-session</SessionToken>\
         <Expiration>{end}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    );
    ([(header::CONTENT_TYPE, "text/xml")], credentials).into_response()
}

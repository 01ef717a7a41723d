//! The description of the API, for programs.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

use super::state::Console;

#[derive(utoipa::OpenApi)]
#[openapi(info(
    title = "Omniglot console",
    description = "People and keys of an Omniglot gateway. Sign in with POST /api/v1/session; the cookie of the response is the session.",
    license(name = "Apache-2.0")
))]
struct ConsoleApi;

/// The description without paths, which the API adds.
pub fn description() -> OpenApi {
    ConsoleApi::openapi()
}

pub fn routes(description: OpenApi) -> Router<Arc<Console>> {
    let text = description.to_pretty_json().unwrap_or_default();
    let text: Arc<str> = text.into();
    let serve = move || {
        let text = text.to_string();
        async move { ([(CONTENT_TYPE, "application/json")], text) }
    };
    Router::new().route("/openapi.json", get(serve))
}

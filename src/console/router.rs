//! All routes of the console, behind what protects them.

use std::sync::Arc;

use axum::Router;

use super::state::Console;
use super::{api, assets, openapi, pages, security};

/// The pages, the API and its description.
pub fn router(console: Arc<Console>) -> Router {
    let (api, description) = api::routes();
    let router = Router::new()
        .merge(api)
        .merge(openapi::routes(description))
        .merge(assets::routes())
        .merge(pages::routes());
    security::protect(router, &console.settings).with_state(console)
}

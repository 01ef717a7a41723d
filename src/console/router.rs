//! All routes of the console, behind what protects them.

use std::sync::Arc;

use axum::Router;

use super::state::Console;
use super::{api, assets, openapi, pages, security};

/// The pages, the API and its description.
pub fn router(console: Arc<Console>) -> Router {
    let router = Router::new()
        .merge(api::routes())
        .merge(openapi::routes())
        .merge(assets::routes())
        .merge(pages::routes());
    security::protect(router, &console.settings).with_state(console)
}

//! The description of the API, for programs.
//!
//! It is a file. The tests make it from the handlers (api/description.rs) and say when it is no longer theirs: made by the
//! process itself, it was a megabyte of code in the binary.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use super::state::Console;

const DESCRIPTION: &str = include_str!("openapi.json");

pub fn routes() -> Router<Arc<Console>> {
    let serve = async || ([(CONTENT_TYPE, "application/json")], DESCRIPTION);
    Router::new().route("/openapi.json", get(serve))
}

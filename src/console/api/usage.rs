//! `/usage` and `/requests`.

use axum::Json;
use axum::extract::{Path, Query};

use crate::console::actor::ConsoleCall;
use crate::console::operations::usage::{self, RequestsInput, UsageInput};
use crate::console::refusal::Refusal;
use crate::console::views::{RequestView, RequestsView, UsageView};

/// What was used in some days, by day, model and key.
#[cfg_attr(test, utoipa::path(get, path = "/usage", tag = "usage", params(UsageInput), responses((status = 200, body = UsageView), (status = 400, body = super::ApiRefusal), (status = 404, body = super::ApiRefusal))))]
pub async fn get_usage(
    call: ConsoleCall,
    Query(input): Query<UsageInput>,
) -> Result<Json<UsageView>, Refusal> {
    usage::get_usage(&call, &input).await.map(Json)
}

/// Requests that used tokens or cost something, the newest first, 50 at a time.
#[cfg_attr(test, utoipa::path(get, path = "/requests", tag = "usage", params(RequestsInput), responses((status = 200, body = RequestsView), (status = 400, body = super::ApiRefusal), (status = 404, body = super::ApiRefusal))))]
pub async fn list_requests(
    call: ConsoleCall,
    Query(input): Query<RequestsInput>,
) -> Result<Json<RequestsView>, Refusal> {
    usage::list_requests(&call, &input).await.map(Json)
}

/// One request with its bill, its attempts and its losses.
#[cfg_attr(test, utoipa::path(get, path = "/requests/{id}", tag = "usage", params(("id" = String, Path)), responses((status = 200, body = RequestView), (status = 404, body = super::ApiRefusal))))]
pub async fn get_request(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<Json<RequestView>, Refusal> {
    usage::get_request(&call, &id).await.map(Json)
}

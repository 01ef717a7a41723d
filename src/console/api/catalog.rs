//! `/models`, for everybody where `server.public_catalog` says so.

use axum::Json;
use axum::extract::Query;

use crate::console::actor::ConsoleCall;
use crate::console::operations::catalog::{self, ModelsInput};
use crate::console::refusal::Refusal;
use crate::console::views::ModelsView;

/// The models with their prices, and what clients of each format lose on them, 24 at a time.
#[cfg_attr(test, utoipa::path(get, path = "/models", tag = "models", params(ModelsInput), responses((status = 200, body = ModelsView), (status = 401, body = super::ApiRefusal), (status = 429, body = super::ApiRefusal))))]
pub async fn list_models(
    call: ConsoleCall,
    Query(input): Query<ModelsInput>,
) -> Result<Json<ModelsView>, Refusal> {
    catalog::list_models(&call, &input).await.map(Json)
}

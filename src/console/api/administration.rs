//! `/audit`, `/upstreams` and `/config`, for administrators.

use axum::Json;
use axum::extract::Query;

use crate::console::actor::ConsoleCall;
use crate::console::operations::audit::{self, AuditInput};
use crate::console::operations::{loaded_config, upstreams};
use crate::console::refusal::Refusal;
use crate::console::views::{AuditView, LoadedConfigView, UpstreamView};

/// Who has changed what, the newest first, 50 at a time; for administrators.
#[cfg_attr(test, utoipa::path(get, path = "/audit", tag = "administration", params(AuditInput), responses((status = 200, body = AuditView), (status = 400, body = super::ApiRefusal), (status = 403, body = super::ApiRefusal))))]
pub async fn list_changes(
    call: ConsoleCall,
    Query(input): Query<AuditInput>,
) -> Result<Json<AuditView>, Refusal> {
    audit::list_changes(&call, &input).await.map(Json)
}

/// The upstreams with what this gateway knows of their health; for administrators.
#[cfg_attr(test, utoipa::path(get, path = "/upstreams", tag = "administration", responses((status = 200, body = [UpstreamView]), (status = 403, body = super::ApiRefusal))))]
pub async fn list_upstreams(call: ConsoleCall) -> Result<Json<Vec<UpstreamView>>, Refusal> {
    upstreams::list_upstreams(&call).await.map(Json)
}

/// The config that is in force, without its secrets; for administrators.
#[cfg_attr(test, utoipa::path(get, path = "/config", tag = "administration", responses((status = 200, body = LoadedConfigView), (status = 403, body = super::ApiRefusal))))]
pub async fn get_config(call: ConsoleCall) -> Result<Json<LoadedConfigView>, Refusal> {
    loaded_config::get_config(&call).await.map(Json)
}

//! `/providers` and `/me/identities`. Signing in at a provider is for browsers: `/identity/NAME`.

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;

use super::ApiRefusal;
use crate::console::actor::ConsoleCall;
use crate::console::operations::identities;
use crate::console::refusal::Refusal;
use crate::console::views::{IdentityView, ProviderView};

/// The identity providers. A browser that opens `/identity/NAME` signs in there.
#[utoipa::path(get, path = "/providers", tag = "session", responses((status = 200, body = [ProviderView])))]
pub async fn list_providers(call: ConsoleCall) -> Json<Vec<ProviderView>> {
    Json(identities::list_providers(&call))
}

/// One's own identities.
#[utoipa::path(get, path = "/me/identities", tag = "me", responses((status = 200, body = [IdentityView])))]
pub async fn list_identities(call: ConsoleCall) -> Result<Json<Vec<IdentityView>>, Refusal> {
    identities::list_identities(&call).await.map(Json)
}

/// Disconnects one of one's own identities.
#[utoipa::path(delete, path = "/me/identities/{id}", tag = "me", params(("id" = String, Path)), responses((status = 204), (status = 404, body = ApiRefusal), (status = 409, body = ApiRefusal)))]
pub async fn unlink(call: ConsoleCall, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    identities::unlink(&call, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

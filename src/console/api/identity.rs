//! `/providers` and `/me/identities`. Signing in at a provider is for browsers: `/identity/NAME`.

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;

use crate::console::actor::ConsoleCall;
use crate::console::operations::identities;
use crate::console::refusal::Refusal;
use crate::console::views::{IdentityView, ProviderView};

/// The identity providers. A browser that opens `/identity/NAME` signs in there.
#[cfg_attr(test, utoipa::path(get, path = "/providers", tag = "session", responses((status = 200, body = [ProviderView]))))]
pub async fn list_providers(call: ConsoleCall) -> Json<Vec<ProviderView>> {
    Json(identities::list_providers(&call))
}

/// One's own identities.
#[cfg_attr(test, utoipa::path(get, path = "/me/identities", tag = "me", responses((status = 200, body = [IdentityView]))))]
pub async fn list_identities(call: ConsoleCall) -> Result<Json<Vec<IdentityView>>, Refusal> {
    identities::list_identities(&call).await.map(Json)
}

/// Disconnects one of one's own identities.
#[cfg_attr(test, utoipa::path(delete, path = "/me/identities/{id}", tag = "me", params(("id" = String, Path)), responses((status = 204), (status = 404, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn unlink(call: ConsoleCall, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    identities::unlink(&call, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! `/fidelity`, for everybody.

use axum::Json;

use crate::console::actor::ConsoleCall;
use crate::console::operations::fidelity;
use crate::console::refusal::Refusal;
use crate::console::views::FidelityView;

/// What gateways lose in translation: the published scorecards of this one and of others.
#[cfg_attr(test, utoipa::path(get, path = "/fidelity", tag = "models", responses((status = 200, body = FidelityView))))]
pub async fn get_fidelity(call: ConsoleCall) -> Result<Json<&'static FidelityView>, Refusal> {
    fidelity::get_fidelity(&call).await.map(Json)
}

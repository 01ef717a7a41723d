//! `/home`.

use axum::Json;
use axum::extract::Query;

use crate::console::actor::ConsoleCall;
use crate::console::operations::home::{self, HomeInput};
use crate::console::refusal::Refusal;
use crate::console::views::HomeView;

/// What is left of one's caps, how today went, and how to set up a client.
#[cfg_attr(test, utoipa::path(get, path = "/home", tag = "home", params(HomeInput), responses((status = 200, body = HomeView), (status = 401, body = super::ApiRefusal))))]
pub async fn get_home(
    call: ConsoleCall,
    Query(input): Query<HomeInput>,
) -> Result<Json<HomeView>, Refusal> {
    home::get_home(&call, &input).await.map(Json)
}

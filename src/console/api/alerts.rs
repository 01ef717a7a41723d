//! `/alerts`.

use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::Deserialize;

use super::Body;
use crate::console::actor::ConsoleCall;
use crate::console::operations::alerts::{self, AlertTargetInput, AlertsInput};
use crate::console::refusal::Refusal;
use crate::console::views::{AlertTestView, AlertView, AlertWithSecret};

/// A new alert: of a key or of the cap of an account.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAlertBody {
    /// The id of the key.
    #[serde(default)]
    key: String,
    /// The name of the account, for an alert of its cap.
    #[serde(default)]
    account: String,
    /// 1 to 5 thresholds in whole percents of the cap; absent: 50, 80 and 100.
    percents: Option<Vec<u8>>,
    to: AlertTargetInput,
}

/// A change of an alert. What is absent stays as it is.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AlertChangeBody {
    percents: Option<Vec<u8>>,
    /// A webhook gets another secret.
    to: Option<AlertTargetInput>,
}

/// Alerts of a key, of the cap of an account, or of all accounts that one belongs to.
#[cfg_attr(test, utoipa::path(get, path = "/alerts", tag = "alerts", params(AlertsInput), responses((status = 200, body = [AlertView]), (status = 404, body = super::ApiRefusal))))]
pub async fn list_alerts(
    call: ConsoleCall,
    Query(input): Query<AlertsInput>,
) -> Result<Json<Vec<AlertView>>, Refusal> {
    alerts::list_alerts(&call, &input).await.map(Json)
}

/// Makes an alert; the secret of a webhook is in this response and in no other.
#[cfg_attr(test, utoipa::path(post, path = "/alerts", tag = "alerts", request_body = NewAlertBody, responses((status = 201, body = AlertWithSecret), (status = 400, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn create_alert(
    call: ConsoleCall,
    Body(body): Body<NewAlertBody>,
) -> Result<(StatusCode, Json<AlertWithSecret>), Refusal> {
    let of = AlertsInput {
        key: body.key,
        account: body.account,
    };
    let percents = body.percents.as_deref();
    let made = alerts::create_alert(&call, &of, percents, &body.to).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

#[cfg_attr(test, utoipa::path(patch, path = "/alerts/{id}", tag = "alerts", params(("id" = String, Path)), request_body = AlertChangeBody, responses((status = 200, body = AlertWithSecret), (status = 400, body = super::ApiRefusal))))]
pub async fn change_alert(
    call: ConsoleCall,
    Path(id): Path<String>,
    Body(body): Body<AlertChangeBody>,
) -> Result<Json<AlertWithSecret>, Refusal> {
    let changed = alerts::change_alert(&call, &id, body.percents.as_deref(), body.to.as_ref());
    changed.await.map(Json)
}

#[cfg_attr(test, utoipa::path(delete, path = "/alerts/{id}", tag = "alerts", params(("id" = String, Path)), responses((status = 204), (status = 404, body = super::ApiRefusal))))]
pub async fn delete_alert(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    alerts::delete_alert(&call, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a test message once.
#[cfg_attr(test, utoipa::path(post, path = "/alerts/{id}/test", tag = "alerts", params(("id" = String, Path)), responses((status = 200, body = AlertTestView), (status = 429, body = super::ApiRefusal))))]
pub async fn test_alert(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<Json<AlertTestView>, Refusal> {
    alerts::test_alert(&call, &id).await.map(Json)
}

//! `/keys`, also of an account.

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Body, amount, nullable};
use crate::config::Reset;
use crate::console::actor::ConsoleCall;
use crate::console::operations::{config_keys, keys};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{ConfigKeyView, KeyView, KeyWithSecret};
use crate::store::KeyChange;

/// The settings of a key. What is absent stays as it is, or as it is by default; null removes it.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyBody {
    /// The name of a new key within its account; it never changes.
    label: Option<String>,
    /// Null: Unlimited Quota. Absent in a new key: `console.member_keys.cap_default`.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    spending_cap: Option<Option<Box<RawValue>>>,
    /// When the spending starts again at zero, in UTC: `none`, `daily` or `monthly`.
    reset: Option<String>,
    /// Globs; null: every model.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schema(value_type = Option<Vec<String>>))]
    models: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schema(value_type = Option<u64>))]
    requests_per_minute: Option<Option<u64>>,
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schema(value_type = Option<u64>))]
    tokens_per_minute: Option<Option<u64>>,
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schema(value_type = Option<u64>))]
    concurrency: Option<Option<u64>>,
    /// Null: never.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schema(value_type = Option<String>, format = DateTime))]
    expires: Option<Option<String>>,
}

impl KeyBody {
    fn change(self) -> Result<KeyChange, Refusal> {
        let moment = |text: String| {
            let time = text.parse::<Timestamp>();
            time.map(|time| time.as_millisecond())
                .map_err(|_| InputProblem::Expiry)
        };
        let cap = self
            .spending_cap
            .map(|cap| cap.map(|cap| amount(&cap)).transpose());
        let reset = self
            .reset
            .map(|word| Reset::from_word(&word).ok_or(InputProblem::Reset));
        let expires = self.expires.map(|expires| expires.map(moment).transpose());
        Ok(KeyChange {
            account: None,
            spending_cap: cap.transpose()?,
            reset: reset.transpose()?,
            models: self.models,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
            concurrency: self.concurrency,
            expires: expires.transpose()?,
        })
    }
}

/// The keys of the config file, which are changed there; for administrators.
#[cfg_attr(test, utoipa::path(get, path = "/config/keys", tag = "keys", responses((status = 200, body = [ConfigKeyView]), (status = 403, body = super::ApiRefusal))))]
pub async fn list_config_keys(call: ConsoleCall) -> Result<Json<Vec<ConfigKeyView>>, Refusal> {
    config_keys::list_config_keys(&call).await.map(Json)
}

/// The keys of an account.
#[cfg_attr(test, utoipa::path(get, path = "/accounts/{account}/keys", tag = "keys", params(("account" = String, Path)), responses((status = 200, body = [KeyView]), (status = 404, body = super::ApiRefusal))))]
pub async fn list_keys(
    call: ConsoleCall,
    Path(account): Path<String>,
) -> Result<Json<Vec<KeyView>>, Refusal> {
    keys::list_keys(&call, &account).await.map(Json)
}

/// Creates a key; its secret is in this response and in no other.
#[cfg_attr(test, utoipa::path(post, path = "/accounts/{account}/keys", tag = "keys", params(("account" = String, Path)), request_body = KeyBody, responses((status = 201, body = KeyWithSecret), (status = 400, body = super::ApiRefusal), (status = 409, body = super::ApiRefusal))))]
pub async fn create_key(
    call: ConsoleCall,
    Path(account): Path<String>,
    Body(body): Body<KeyBody>,
) -> Result<(StatusCode, Json<KeyWithSecret>), Refusal> {
    let label = body.label.clone().unwrap_or_default();
    let created = keys::create_key(&call, &account, &label, body.change()?).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

#[cfg_attr(test, utoipa::path(get, path = "/keys/{id}", tag = "keys", params(("id" = String, Path)), responses((status = 200, body = KeyView), (status = 404, body = super::ApiRefusal))))]
pub async fn get_key(call: ConsoleCall, Path(id): Path<String>) -> Result<Json<KeyView>, Refusal> {
    keys::get_key(&call, &id).await.map(Json)
}

/// Changes a key.
#[cfg_attr(test, utoipa::path(patch, path = "/keys/{id}", tag = "keys", params(("id" = String, Path)), request_body = KeyBody, responses((status = 200, body = KeyView), (status = 400, body = super::ApiRefusal), (status = 403, body = super::ApiRefusal))))]
pub async fn change_key(
    call: ConsoleCall,
    Path(id): Path<String>,
    Body(body): Body<KeyBody>,
) -> Result<Json<KeyView>, Refusal> {
    if body.label.is_some() {
        return Err(InputProblem::LabelFixed.into());
    }
    keys::change_key(&call, &id, body.change()?).await.map(Json)
}

/// Revokes a key; every gateway refuses it within 5 seconds.
#[cfg_attr(test, utoipa::path(delete, path = "/keys/{id}", tag = "keys", params(("id" = String, Path)), responses((status = 204), (status = 404, body = super::ApiRefusal))))]
pub async fn revoke_key(call: ConsoleCall, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    keys::revoke_key(&call, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateBody {
    /// For how many more seconds the present secret works; at most 30 days.
    #[serde(default)]
    overlap_seconds: u32,
}

/// Gives a key a new secret, which is in this response and in no other.
#[cfg_attr(test, utoipa::path(post, path = "/keys/{id}/rotate", tag = "keys", params(("id" = String, Path)), request_body = RotateBody, responses((status = 200, body = KeyWithSecret), (status = 404, body = super::ApiRefusal))))]
pub async fn rotate_key(
    call: ConsoleCall,
    Path(id): Path<String>,
    Body(body): Body<RotateBody>,
) -> Result<Json<KeyWithSecret>, Refusal> {
    let overlap = i64::from(body.overlap_seconds) * 1000;
    keys::rotate_key(&call, &id, overlap).await.map(Json)
}

//! `/accounts`.

use axum::Json;
use axum::extract::Path;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Body, amount, nullable};
use crate::config::Reset;
use crate::console::actor::ConsoleCall;
use crate::console::operations::accounts::{self, AccountEdit};
use crate::console::operations::keys;
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{AccountSpendingView, AccountView};

/// The accounts whose keys one may see, of people and of teams.
#[cfg_attr(test, utoipa::path(get, path = "/accounts", tag = "keys", responses((status = 200, body = [AccountView]))))]
pub async fn list_accounts(call: ConsoleCall) -> Result<Json<Vec<AccountView>>, Refusal> {
    keys::list_accounts(&call).await.map(Json)
}

/// An account with what all of its keys have spent together.
#[cfg_attr(test, utoipa::path(get, path = "/accounts/{account}", tag = "keys", params(("account" = String, Path)), responses((status = 200, body = AccountSpendingView), (status = 404, body = super::ApiRefusal))))]
pub async fn get_account(
    call: ConsoleCall,
    Path(account): Path<String>,
) -> Result<Json<AccountSpendingView>, Refusal> {
    accounts::get_account(&call, &account).await.map(Json)
}

/// A change of an account. What is absent stays as it is.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AccountBody {
    /// What all keys of the account may spend together; null: Unlimited Quota.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    spending_cap: Option<Option<Box<RawValue>>>,
    /// When the spending starts again at zero, in UTC: `none`, `daily` or `monthly`.
    reset: Option<String>,
    /// Of a team: every gateway refuses its keys within 5 seconds. (A person is disabled under `/people`.)
    disabled: Option<bool>,
}

/// Sets the spending cap of the account of a person or a team, or disables a team; for administrators.
#[cfg_attr(test, utoipa::path(patch, path = "/accounts/{account}", tag = "keys", params(("account" = String, Path)), request_body = AccountBody, responses((status = 200, body = AccountSpendingView), (status = 400, body = super::ApiRefusal), (status = 403, body = super::ApiRefusal))))]
pub async fn change_account(
    call: ConsoleCall,
    Path(account): Path<String>,
    Body(body): Body<AccountBody>,
) -> Result<Json<AccountSpendingView>, Refusal> {
    let cap = body
        .spending_cap
        .map(|cap| cap.map(|cap| amount(&cap)).transpose());
    let reset = body.reset.as_deref();
    let reset = reset.map(|word| Reset::from_word(word).ok_or(InputProblem::Reset));
    let edit = AccountEdit {
        spending_cap: cap.transpose()?,
        reset: reset.transpose()?,
        disabled: body.disabled,
    };
    accounts::change_account(&call, &account, edit)
        .await
        .map(Json)
}

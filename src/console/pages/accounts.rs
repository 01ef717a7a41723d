//! The spending cap of an account, which administrators set.

use axum::extract::{Form, Path};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::visit::Visit;
use crate::config::Reset;
use crate::console::operations::accounts::{self, AccountEdit};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::AccountSpendingView;
use crate::model::Money;

/// The form of an account's cap.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CapForm {
    /// `cap` or `unlimited`.
    pub quota: String,
    pub cap: String,
    pub reset: String,
    /// Where the form stands.
    pub next: String,
}

impl CapForm {
    pub fn of(spending: &AccountSpendingView, next: String) -> CapForm {
        let account = &spending.account;
        let cap = account.spending_cap.map(|cap| cap.to_string());
        CapForm {
            quota: match account.unlimited_quota {
                true => "unlimited".to_owned(),
                false => "cap".to_owned(),
            },
            cap: cap.unwrap_or_default(),
            reset: match account.unlimited_quota {
                true => Reset::Monthly.word().to_owned(),
                false => account.reset.to_owned(),
            },
            next,
        }
    }

    fn edit(&self) -> Result<AccountEdit, Refusal> {
        if self.quota == "unlimited" {
            return Ok(AccountEdit {
                spending_cap: Some(None),
                ..AccountEdit::default()
            });
        }
        let cap = Money::parse(self.cap.trim()).ok_or(InputProblem::Cap)?;
        let reset = Reset::from_word(&self.reset).ok_or(InputProblem::Reset)?;
        Ok(AccountEdit {
            spending_cap: Some(Some(cap)),
            reset: Some(reset),
            ..AccountEdit::default()
        })
    }
}

pub async fn set_cap(
    mut visit: Visit,
    Path(account): Path<String>,
    Form(form): Form<CapForm>,
) -> Response {
    let changed = async {
        let edit = form.edit()?;
        accounts::change_account(&visit.call, &account, edit).await
    };
    let next = super::visit::local_path(&form.next);
    match changed.await {
        Ok(_) => Redirect::to(&format!("{next}?note=saved")).into_response(),
        Err(refusal) => {
            next.clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

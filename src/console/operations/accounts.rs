//! Accounts of people and teams: what all keys of one may spend together.

use jiff::Timestamp;

use super::keys::held;
use crate::config::Reset;
use crate::console::actor::ConsoleCall;
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::AccountSpendingView;
use crate::model::Money;
use crate::store::AccountSummary;

/// A change of an account; `None`: unchanged, `Some(None)`: Unlimited Quota.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountEdit {
    pub spending_cap: Option<Option<Money>>,
    pub reset: Option<Reset>,
    /// Of a team only: people are disabled, and not their accounts.
    pub disabled: Option<bool>,
}

/// An account with what its keys have spent together, for everybody who belongs to it.
pub async fn get_account(call: &ConsoleCall, name: &str) -> Result<AccountSpendingView, Refusal> {
    call.check_may_read(name).await?;
    let account = find(call, name).await?;
    view(call, account).await
}

/// Changes an account: its cap, which holds above those of its keys, and whether a team is disabled.
pub async fn change_account(
    call: &ConsoleCall,
    name: &str,
    edit: AccountEdit,
) -> Result<AccountSpendingView, Refusal> {
    call.check_admin()?;
    call.check_stepped_up()?;
    let account = find(call, name).await?;
    if !account.has_owner() {
        return Err(InputProblem::AccountWithoutOwner.into());
    }
    if edit.disabled.is_some() && !account.is_team() {
        return Err(InputProblem::TeamNeeded.into());
    }
    // All fields are checked before anything changes.
    let cap = edit.cap_of(&account)?;
    if let Some(disabled) = edit.disabled {
        let entry = call.audit("account.change", name, format!("disabled {disabled}"));
        let store = &call.console.store;
        store.disable_team(name, disabled, &entry).await?;
    }
    if edit.spending_cap.is_some() || edit.reset.is_some() {
        set_cap(call, &account, cap).await?;
    }
    view(call, find(call, name).await?).await
}

impl AccountEdit {
    /// The cap that the account has then, and when its spending starts again.
    fn cap_of(&self, account: &AccountSummary) -> Result<(Option<Money>, Reset), Refusal> {
        let cap = self.spending_cap.unwrap_or(account.spending_cap);
        match (cap, self.reset) {
            (None, Some(Reset::Daily | Reset::Monthly)) => {
                Err(InputProblem::ResetWithoutCap.into())
            }
            (None, _) => Ok((None, Reset::Never)),
            (Some(_), reset) => Ok((cap, reset.unwrap_or(account.reset))),
        }
    }
}

async fn set_cap(
    call: &ConsoleCall,
    account: &AccountSummary,
    (cap, reset): (Option<Money>, Reset),
) -> Result<(), Refusal> {
    let change = match cap {
        Some(cap) => format!("cap {cap}, reset {}", reset.word()),
        None => "unlimited quota".to_owned(),
    };
    let entry = call.audit("account.change", &account.name, change);
    let store = &call.console.store;
    let set = store.set_account_cap(&account.id, cap, reset, &entry);
    Ok(set.await?)
}

/// The account of a team.
pub(super) async fn find_team(call: &ConsoleCall, name: &str) -> Result<AccountSummary, Refusal> {
    let account = find(call, name).await?;
    match account.is_team() {
        true => Ok(account),
        false => Err(InputProblem::TeamNeeded.into()),
    }
}

pub(super) async fn find(call: &ConsoleCall, name: &str) -> Result<AccountSummary, Refusal> {
    let account = call.console.store.account(name).await?;
    account.ok_or(Refusal::NotFound)
}

/// An account with what is left of its cap.
pub(super) async fn view(
    call: &ConsoleCall,
    account: AccountSummary,
) -> Result<AccountSpendingView, Refusal> {
    // The end of time as the start: nothing is subtracted.
    let (began, now) = (Timestamp::MAX, Timestamp::now());
    let spent = call.console.store.account_spending(&account.id, began, now);
    let (spent, held) = (spent.await?, held(call, &account.id));
    let role = call.own_roles().await?.remove(&account.id);
    Ok(AccountSpendingView::new(account, role, spent, held, now))
}

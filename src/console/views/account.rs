//! Accounts, with what their keys may spend together.

use jiff::Timestamp;
use serde::Serialize;

use super::{Decimal, KeyUse, Moment, percent};
use crate::model::{Money, Spending};
use crate::runtime::period_end;
use crate::store::{AccountSummary, MembershipRole};

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AccountView {
    pub name: String,
    /// `person`, `team` or `system`.
    pub kind: String,
    /// One's own role in it: `owner`, `member` or `viewer`; null: one does not belong to it.
    pub role: Option<&'static str>,
    /// How many people belong to it.
    pub members: i64,
    pub disabled: bool,
    /// How many keys it has.
    pub keys: i64,
    /// Unlimited Quota: only the caps of its keys hold.
    pub unlimited_quota: bool,
    /// The most that all of its keys may spend together.
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub spending_cap: Option<Decimal>,
    /// `none`, `daily` or `monthly`.
    pub reset: &'static str,
}

impl AccountView {
    pub fn new(account: AccountSummary, role: Option<MembershipRole>) -> AccountView {
        AccountView {
            name: account.name,
            kind: account.kind,
            role: role.map(MembershipRole::word),
            members: account.members,
            disabled: account.is_disabled,
            keys: account.keys,
            unlimited_quota: account.spending_cap.is_none(),
            spending_cap: account.spending_cap.map(Decimal),
            reset: account.reset.word(),
        }
    }

    pub fn is_team(&self) -> bool {
        self.kind == "team"
    }
}

/// An account with what its keys have spent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AccountSpendingView {
    #[serde(flatten)]
    pub account: AccountView,
    #[cfg_attr(test, schema(value_type = Option<String>, format = DateTime))]
    pub resets_at: Option<Moment>,
    /// In the period of the cap, as far as it is recorded.
    #[cfg_attr(test, schema(value_type = f64))]
    pub spent: Decimal,
    /// Reserved by this gateway for requests in flight.
    #[cfg_attr(test, schema(value_type = f64))]
    pub held: Decimal,
    /// Neither spent nor held.
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub left: Option<Decimal>,
}

impl AccountSpendingView {
    pub fn new(
        account: AccountSummary,
        role: Option<MembershipRole>,
        spending: Spending,
        held: Money,
        now: Timestamp,
    ) -> AccountSpendingView {
        let used = KeyUse {
            spending,
            held,
            last_used: None,
        };
        let (cap, reset) = (account.spending_cap, account.reset);
        let spent = used.spent(reset);
        AccountSpendingView {
            account: AccountView::new(account, role),
            resets_at: period_end(reset, now).map(|end| Moment(end.as_millisecond())),
            spent: Decimal(spent),
            held: Decimal(held),
            left: cap.map(|cap| Decimal(cap.saturating_sub(spent).saturating_sub(held))),
        }
    }

    /// How much of the cap is used, in percent.
    pub fn percent(&self) -> u8 {
        percent(self.account.spending_cap, self.spent)
    }
}

//! What a person sees first: what is left, how today went, and how to set up a client.

use serde::Serialize;

use super::{AccountSpendingView, Decimal, KeyView};

/// The first page of a person.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct HomeView {
    pub account: String,
    /// What all keys of the account have spent, and what is left of its cap.
    pub spending: AccountSpendingView,
    /// The same of the teams that one belongs to.
    pub teams: Vec<AccountSpendingView>,
    pub today: TodayView,
    /// The keys of the account, those first that have used most of their cap.
    pub keys: Vec<KeyView>,
    /// Where clients reach the gateway.
    pub gateway_url: String,
    /// The models for conversations that one of the keys may use.
    pub models: Vec<String>,
    /// The one in the snippets; null: there is none.
    pub model: Option<String>,
    pub snippets: Vec<SnippetView>,
}

/// What an account has used since the day began, in UTC.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TodayView {
    pub requests: u64,
    #[cfg_attr(test, schema(value_type = f64))]
    pub cost: Decimal,
    /// At this gateway, since the day began or it started.
    pub errors: Vec<ErrorCountView>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ErrorCountView {
    /// As the access log names it.
    pub kind: &'static str,
    pub count: u64,
}

/// What to set in a client, ready to be copied.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SnippetView {
    /// A word for programs.
    pub id: &'static str,
    pub client: &'static str,
    /// The format that it speaks.
    pub format: &'static str,
    /// The file that it belongs in; null: a shell or a program.
    pub file: Option<&'static str>,
    pub text: String,
}

impl TodayView {
    pub fn failed(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

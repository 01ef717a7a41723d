//! The keys of the config file, for administrators.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::visit::{Page, Visit, render};
use crate::config::InspectorAccess;
use crate::console::operations::{config_keys, keys};
use crate::console::refusal::Refusal;
use crate::console::texts::fill;
use crate::console::views::{AccountView, ConfigKeyView};

#[derive(Template)]
#[template(path = "config_keys.html")]
struct ConfigKeysPage {
    page: Page,
    accounts: Vec<AccountView>,
    keys: Vec<ConfigKeyView>,
    may_inspect: bool,
}

impl ConfigKeysPage {
    fn line(&self, key: &ConfigKeyView) -> String {
        fill(self.page.texts.config_line, key.line)
    }
}

pub async fn list(visit: Visit) -> Response {
    let found = async {
        let keys = config_keys::list_config_keys(&visit.call).await?;
        let accounts = keys::list_accounts(&visit.call).await?;
        Ok::<_, Refusal>((keys, accounts))
    };
    match found.await {
        Ok((keys, accounts)) => {
            let page = visit.page.in_section("keys");
            let template = ConfigKeysPage {
                page,
                accounts,
                keys,
                may_inspect: visit.call.console.settings.inspector == InspectorAccess::Owners,
            };
            render(&template, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

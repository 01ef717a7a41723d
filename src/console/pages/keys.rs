//! The list of keys, a new key, and one key.

use askama::Template;
use axum::extract::{Form, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::forms::KeyForm;
use super::visit::{Page, Visit, render, status_of};
use crate::console::operations::{accounts, inspect, keys};
use crate::console::refusal::Refusal;
use crate::console::texts::fill;
use crate::console::views::{
    AccountSpendingView, AccountView, InspectionView, KeyView, KeyWithSecret,
};

const SECTION: &str = "keys";

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    page: Page,
    title: String,
    name: String,
    accounts: Vec<AccountView>,
    account: AccountSpendingView,
    keys: Vec<KeyView>,
    may_write: bool,
    new_path: String,
}

#[derive(Template)]
#[template(path = "new_key.html")]
struct NewKeyPage {
    page: Page,
    form: KeyForm,
    cap_hint: String,
    may_unlimited: bool,
    action: String,
    back: String,
}

#[derive(Template)]
#[template(path = "key.html")]
struct KeyPage {
    page: Page,
    key: KeyView,
    form: KeyForm,
    cap_hint: String,
    may_unlimited: bool,
    may_write: bool,
    /// The actor may inspect it.
    may_inspect: bool,
    inspection: Option<InspectionView>,
    previous: Option<String>,
    back: String,
}

impl KeyPage {
    fn is_inspected(&self) -> bool {
        let inspection = self.inspection.as_ref();
        inspection.is_some_and(|inspection| inspection.running)
    }
}

#[derive(Template)]
#[template(path = "secret.html")]
struct SecretPage {
    page: Page,
    title: &'static str,
    key: KeyView,
    secret: String,
    previous: Option<String>,
}

/// The keys of one's own account.
pub async fn list_own(visit: Visit) -> Response {
    match visit.call.signed_in() {
        Ok(signed_in) => {
            let account = signed_in.person.handle.clone();
            show_list(visit, account).await
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn list(visit: Visit, Path(account): Path<String>) -> Response {
    show_list(visit, account).await
}

async fn show_list(visit: Visit, account: String) -> Response {
    let found = async {
        let keys = keys::list_keys(&visit.call, &account).await?;
        let accounts = keys::list_accounts(&visit.call).await?;
        let spending = accounts::get_account(&visit.call, &account).await?;
        Ok::<_, Refusal>((keys, accounts, spending))
    };
    let (keys, accounts, spending) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let may_write = visit.call.check_may_write(&account).await.is_ok();
    let page = visit.page.in_section(SECTION);
    let own = page.person.as_ref().map(|person| person.handle.as_str());
    let template = KeysPage {
        title: match own == Some(account.as_str()) {
            true => page.texts.keys.to_owned(),
            false => fill(page.texts.keys_of, &account),
        },
        new_path: format!("{}/new-key", account_path(&account)),
        page,
        name: account,
        accounts,
        account: spending,
        keys,
        may_write,
    };
    render(&template, StatusCode::OK)
}

fn account_path(account: &str) -> String {
    format!(
        "/accounts/{}",
        utf8_percent_encode(account, NON_ALPHANUMERIC)
    )
}

pub async fn show_new(visit: Visit, Path(account): Path<String>) -> Response {
    if let Err(refusal) = visit.call.check_may_write(&account).await {
        return visit.refuse(&refusal);
    }
    let form = KeyForm::new(&visit.call.console.settings.member_keys);
    new_key_page(visit, &account, form, None)
}

fn new_key_page(visit: Visit, account: &str, form: KeyForm, problem: Option<&Refusal>) -> Response {
    let (cap_hint, may_unlimited) = quota_texts(&visit);
    let page = visit.page.in_section(SECTION);
    let page = match problem {
        Some(refusal) => page.with_problem(refusal),
        None => page,
    };
    let action = format!("{}/keys", account_path(account));
    let template = NewKeyPage {
        page,
        form,
        cap_hint,
        may_unlimited,
        back: action.clone(),
        action,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

/// What the form says of caps, and whether it offers Unlimited Quota.
fn quota_texts(visit: &Visit) -> (String, bool) {
    let (texts, allowed) = (visit.page.texts, &visit.call.console.settings.member_keys);
    match visit.call.is_admin() {
        true => (texts.cap_hint.to_owned(), true),
        false => (
            fill(texts.cap_hint_member, &allowed.cap_max.written),
            allowed.unlimited,
        ),
    }
}

pub async fn create(
    visit: Visit,
    Path(account): Path<String>,
    Form(form): Form<KeyForm>,
) -> Response {
    let created = async {
        let mut change = form.change()?;
        // Without a day it is the last one that the maker may give.
        change.expires = change.expires.filter(Option::is_some);
        keys::create_key(&visit.call, &account, &form.label, change).await
    };
    match created.await {
        Ok(created) => show_secret(visit, created, StatusCode::CREATED),
        Err(refusal @ Refusal::ConfirmPassword) => {
            let mut visit = visit;
            visit.page.path = format!("{}/new-key", account_path(&account));
            visit.refuse(&refusal)
        }
        Err(refusal @ (Refusal::Invalid(_) | Refusal::LabelTaken | Refusal::TooManyKeys(_))) => {
            new_key_page(visit, &account, form, Some(&refusal))
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

/// The page that shows a secret: the response itself, for it is kept nowhere.
fn show_secret(visit: Visit, created: KeyWithSecret, status: StatusCode) -> Response {
    let page = visit.page.in_section(SECTION);
    let template = SecretPage {
        title: match status {
            StatusCode::CREATED => page.texts.secret_title,
            _ => page.texts.rotated_title,
        },
        previous: previous_text(&page, &created.key),
        page,
        key: created.key,
        secret: created.secret,
    };
    render(&template, status)
}

fn previous_text(page: &Page, key: &KeyView) -> Option<String> {
    key.previous_until
        .map(|until| fill(page.texts.previous_until, page.texts.moment(until)))
}

pub async fn show(visit: Visit, Path(id): Path<String>) -> Response {
    key_page(visit, &id, None, None).await
}

/// The page of a key, with a form that was refused.
async fn key_page(
    visit: Visit,
    id: &str,
    form: Option<KeyForm>,
    problem: Option<&Refusal>,
) -> Response {
    let key = match keys::get_key(&visit.call, id).await {
        Ok(key) => key,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let may_write = visit.call.check_may_write(&key.account).await.is_ok();
    let inspection = inspect::find_inspection(&visit.call, id).await;
    let (cap_hint, may_unlimited) = quota_texts(&visit);
    let page = visit.page.in_section(SECTION);
    let page = match problem {
        Some(refusal) => page.with_problem(refusal),
        None => page,
    };
    let template = KeyPage {
        form: form.unwrap_or_else(|| KeyForm::of(&key)),
        cap_hint,
        // A key that has it keeps it, whoever changes something else.
        may_unlimited: may_unlimited || key.unlimited_quota,
        may_write,
        may_inspect: inspection.is_ok(),
        inspection: inspection.ok().flatten(),
        previous: previous_text(&page, &key),
        back: format!("{}/keys", account_path(&key.account)),
        page,
        key,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

pub async fn change(visit: Visit, Path(id): Path<String>, Form(form): Form<KeyForm>) -> Response {
    let changed = async {
        let change = form.change()?;
        keys::change_key(&visit.call, &id, change).await
    };
    match changed.await {
        Ok(_) => Redirect::to(&format!("/keys/{id}?note=saved")).into_response(),
        Err(refusal @ Refusal::Invalid(_)) => {
            key_page(visit, &id, Some(form), Some(&refusal)).await
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

#[derive(Deserialize)]
pub struct RotateForm {
    /// In seconds.
    overlap: u32,
}

pub async fn rotate(
    visit: Visit,
    Path(id): Path<String>,
    Form(form): Form<RotateForm>,
) -> Response {
    match keys::rotate_key(&visit.call, &id, i64::from(form.overlap) * 1000).await {
        Ok(rotated) => show_secret(visit, rotated, StatusCode::OK),
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn revoke(visit: Visit, Path(id): Path<String>) -> Response {
    let revoked = async {
        let key = keys::get_key(&visit.call, &id).await?;
        keys::revoke_key(&visit.call, &id).await?;
        Ok::<_, Refusal>(key.account)
    };
    match revoked.await {
        Ok(account) => {
            let list = format!("{}/keys?note=revoked", account_path(&account));
            Redirect::to(&list).into_response()
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

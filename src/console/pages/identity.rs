//! To an identity provider and back, and the account of somebody who comes for the first time.

use askama::Template;
use axum::extract::{Form, Path, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum_extra::extract::CookieJar;
use serde::Deserialize;

use super::sign_in::AccountForm;
use super::visit::{Page, Visit, local_path, render, status_of};
use crate::console::identity::ProviderAnswer;
use crate::console::operations::identities;
use crate::console::operations::identity::{self, Arrival, FlowPurpose};
use crate::console::refusal::Refusal;
use crate::console::sessions::{ended_flow_cookie, flow_cookie, flow_value};

#[derive(Template)]
#[template(path = "welcome.html")]
struct WelcomePage {
    page: Page,
    form: AccountForm,
    email: Option<String>,
}

#[derive(Deserialize, Default)]
pub struct DepartQuery {
    #[serde(default)]
    purpose: String,
    #[serde(default)]
    next: String,
}

/// A link and no form: the content security policy lets no form lead to another site.
pub async fn depart(
    mut visit: Visit,
    Path(provider): Path<String>,
    Query(query): Query<DepartQuery>,
    headers: HeaderMap,
) -> Response {
    let purpose = FlowPurpose::from_word(&query.purpose);
    if purpose != FlowPurpose::SignIn && is_foreign(&headers) {
        return Redirect::to("/me").into_response();
    }
    match identity::depart(&visit.call, &provider, purpose, local_path(&query.next)).await {
        Ok(departure) => {
            let cookie = flow_cookie(&visit.call.console.settings, departure.cookie);
            let jar = CookieJar::new().add(cookie);
            (jar, Redirect::to(&departure.url)).into_response()
        }
        Err(refusal) => {
            "/me".clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

/// Whether a browser says that another site has led it here: that one must not begin what changes an account.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin")
}

pub async fn arrive(
    visit: Visit,
    Path(provider): Path<String>,
    Query(answer): Query<ProviderAnswer>,
    headers: HeaderMap,
) -> Response {
    let settings = &visit.call.console.settings;
    let cookie = flow_value(settings, &headers);
    let arrived = identity::arrive(&visit.call, &provider, &cookie, &answer).await;
    let response = match arrived {
        Ok(Arrival::Entered(entered, next)) => visit.enter(entered, &next),
        Ok(Arrival::Welcome(token)) => {
            // Only this browser goes on with it.
            let jar = CookieJar::new().add(flow_cookie(settings, token));
            return (jar, Redirect::to("/welcome")).into_response();
        }
        Ok(Arrival::Linked) => Redirect::to("/me?note=saved").into_response(),
        Ok(Arrival::Confirmed(next)) => Redirect::to(local_path(&next)).into_response(),
        Err(refusal) => visit.refuse(&refusal),
    };
    // The visit is over, whatever came of it.
    let jar = CookieJar::new().add(ended_flow_cookie(settings));
    (jar, response).into_response()
}

pub async fn show_welcome(visit: Visit, headers: HeaderMap) -> Response {
    let token = flow_value(&visit.call.console.settings, &headers);
    welcome_page(visit, &token, None, None).await
}

async fn welcome_page(
    visit: Visit,
    token: &str,
    form: Option<AccountForm>,
    problem: Option<Refusal>,
) -> Response {
    let known = match identity::find_welcome(&visit.call, token).await {
        Ok(known) => known,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let status = problem.as_ref().map_or(StatusCode::OK, status_of);
    let page = match &problem {
        Some(refusal) => visit.page.with_problem(refusal),
        None => visit.page,
    };
    let template = WelcomePage {
        page,
        form: form.unwrap_or_else(|| AccountForm {
            handle: suggested_handle(known.email.as_deref().unwrap_or(&known.display)),
            display: known.display.clone(),
            ..AccountForm::default()
        }),
        email: known.email,
    };
    render(&template, status)
}

/// A username from the begin of an address or a name.
fn suggested_handle(text: &str) -> String {
    let start = text.split('@').next().unwrap_or_default().to_lowercase();
    let plain = start.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' => letter,
        _ => '-',
    });
    let plain: String = plain.take(32).collect();
    plain.trim_matches('-').to_owned()
}

pub async fn welcome(visit: Visit, headers: HeaderMap, Form(form): Form<AccountForm>) -> Response {
    let settings = &visit.call.console.settings;
    let token = flow_value(settings, &headers);
    match identity::welcome(&visit.call, &token, form.input()).await {
        Ok(begun) => {
            let jar = CookieJar::new().add(ended_flow_cookie(settings));
            (jar, visit.begin(begun, "/")).into_response()
        }
        Err(refusal) => welcome_page(visit, &token, Some(form), Some(refusal)).await,
    }
}

pub async fn unlink(mut visit: Visit, Path(id): Path<String>) -> Response {
    match identities::unlink(&visit.call, &id).await {
        Ok(()) => Redirect::to("/me?note=saved").into_response(),
        Err(refusal) => {
            "/me".clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

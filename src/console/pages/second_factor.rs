//! The second factor: turned on and off, and asked for after the password.

use askama::Template;
use axum::extract::{Form, Path, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum_extra::extract::CookieJar;
use serde::Deserialize;

use super::visit::{Page, Visit, local_path, render, status_of};
use crate::console::operations::second_factor;
use crate::console::refusal::Refusal;
use crate::console::sessions::{ended_pending_cookie, pending_token, session_cookie};
use crate::console::views::SecondFactorSetup;

#[derive(Template)]
#[template(path = "code.html")]
struct CodePage {
    page: Page,
    next: String,
}

#[derive(Template)]
#[template(path = "second_factor.html")]
struct SecondFactorPage {
    page: Page,
    setup: SecondFactorSetup,
    grouped: String,
}

#[derive(Template)]
#[template(path = "recovery.html")]
struct RecoveryPage {
    page: Page,
    codes: Vec<String>,
}

#[derive(Deserialize)]
pub struct CodeForm {
    #[serde(default)]
    code: String,
    #[serde(default)]
    next: String,
}

#[derive(Deserialize, Default)]
pub struct CodeQuery {
    #[serde(default)]
    next: String,
}

pub async fn show_code(visit: Visit, Query(query): Query<CodeQuery>) -> Response {
    let template = CodePage {
        page: visit.page,
        next: query.next,
    };
    render(&template, StatusCode::OK)
}

pub async fn enter_code(visit: Visit, headers: HeaderMap, Form(form): Form<CodeForm>) -> Response {
    let settings = &visit.call.console.settings;
    let pending = pending_token(settings, &headers);
    match second_factor::enter_code(&visit.call, &pending, &form.code).await {
        Ok(begun) => {
            let jar = CookieJar::new()
                .add(ended_pending_cookie(settings))
                .add(session_cookie(settings, begun.token));
            (jar, Redirect::to(local_path(&form.next))).into_response()
        }
        Err(refusal @ (Refusal::WrongCode | Refusal::TooManyAttempts(_))) => {
            let template = CodePage {
                page: visit.page.with_problem(&refusal),
                next: form.next,
            };
            render(&template, status_of(&refusal))
        }
        Err(Refusal::LinkOver) => Redirect::to("/sign-in").into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn begin_setup(mut visit: Visit) -> Response {
    match second_factor::begin_setup(&visit.call).await {
        Ok(_) => Redirect::to("/me/second-factor").into_response(),
        Err(refusal) => {
            "/me".clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

pub async fn show_setup(visit: Visit) -> Response {
    setup_page(visit, None).await
}

async fn setup_page(visit: Visit, problem: Option<&Refusal>) -> Response {
    let setup = match second_factor::find_setup(&visit.call).await {
        Ok(setup) => setup,
        Err(Refusal::NotFound) => return Redirect::to("/me").into_response(),
        Err(refusal) => return visit.refuse(&refusal),
    };
    let page = visit.page.in_section("me");
    let page = match problem {
        Some(refusal) => page.with_problem(refusal),
        None => page,
    };
    // People type it in groups of four.
    let letters: Vec<char> = setup.secret.chars().collect();
    let groups: Vec<String> = letters
        .chunks(4)
        .map(|group| group.iter().collect())
        .collect();
    let template = SecondFactorPage {
        page,
        grouped: groups.join(" "),
        setup,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

pub async fn confirm_setup(visit: Visit, Form(form): Form<CodeForm>) -> Response {
    match second_factor::confirm_setup(&visit.call, &form.code).await {
        Ok(on) => {
            let cookie = session_cookie(&visit.call.console.settings, on.begun.token);
            let jar = CookieJar::new().add(cookie);
            (jar, recovery_page(visit, on.recovery_codes)).into_response()
        }
        Err(refusal @ Refusal::WrongCode) => setup_page(visit, Some(&refusal)).await,
        Err(refusal) => visit.refuse(&refusal),
    }
}

/// The page that shows the codes: the response itself, for they are kept nowhere.
fn recovery_page(visit: Visit, codes: Vec<String>) -> Response {
    let page = visit.page.in_section("me");
    render(&RecoveryPage { page, codes }, StatusCode::OK)
}

pub async fn turn_off(mut visit: Visit) -> Response {
    match second_factor::turn_off(&visit.call).await {
        Ok(begun) => visit.begin(begun, "/me?note=saved"),
        Err(refusal) => {
            "/me".clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

pub async fn replace_recovery_codes(mut visit: Visit) -> Response {
    match second_factor::replace_recovery_codes(&visit.call).await {
        Ok(codes) => recovery_page(visit, codes),
        Err(refusal) => {
            "/me".clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

pub async fn remove(mut visit: Visit, Path(id): Path<String>) -> Response {
    match second_factor::remove_second_factor(&visit.call, &id).await {
        Ok(_) => Redirect::to(&format!("/people/{id}?note=saved")).into_response(),
        Err(refusal) => {
            visit.page.path = format!("/people/{id}");
            visit.refuse(&refusal)
        }
    }
}

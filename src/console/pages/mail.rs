//! The pages around mail: a lost password, an address to be proven.

use askama::Template;
use axum::extract::{Form, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::visit::{Page, Visit, render, status_of};
use crate::console::operations::{reset, verification};
use crate::console::refusal::Refusal;
use crate::console::texts::fill;

#[derive(Template)]
#[template(path = "forgot.html")]
struct ForgotPage {
    page: Page,
    login: String,
}

/// Says that a message may be on its way.
#[derive(Template)]
#[template(path = "sent.html")]
pub struct SentPage {
    pub page: Page,
    pub lead: String,
}

#[derive(Template)]
#[template(path = "verify.html")]
struct VerifyPage {
    page: Page,
    lead: String,
    action: String,
}

#[derive(Deserialize)]
pub struct ForgotForm {
    #[serde(default)]
    login: String,
}

pub async fn show_forgot(visit: Visit) -> Response {
    if let Err(refusal) = visit.call.console.mailer() {
        return visit.refuse(&refusal);
    }
    let template = ForgotPage {
        page: visit.page,
        login: String::new(),
    };
    render(&template, StatusCode::OK)
}

pub async fn request_reset(visit: Visit, Form(form): Form<ForgotForm>) -> Response {
    match reset::request_reset(&visit.call, &form.login).await {
        Ok(()) => {
            let lead = visit.page.texts.sent_reset.to_owned();
            let page = visit.page;
            render(&SentPage { page, lead }, StatusCode::ACCEPTED)
        }
        Err(refusal @ Refusal::MailOff) => visit.refuse(&refusal),
        Err(refusal) => {
            let template = ForgotPage {
                page: visit.page.with_problem(&refusal),
                login: form.login,
            };
            render(&template, status_of(&refusal))
        }
    }
}

pub async fn show_verify(visit: Visit, Path(token): Path<String>) -> Response {
    match verification::find_verification(&visit.call, &token).await {
        Ok(address) => {
            let template = VerifyPage {
                lead: fill(visit.page.texts.verify_lead, &address.email),
                action: format!("/verify/{token}"),
                page: visit.page,
            };
            render(&template, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn verify(visit: Visit, Path(token): Path<String>) -> Response {
    match verification::verify(&visit.call, &token).await {
        Ok(_) if visit.page.person.is_some() => Redirect::to("/me?note=verified").into_response(),
        Ok(_) => Redirect::to("/sign-in?note=verified").into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn request_verification(visit: Visit) -> Response {
    match verification::request_verification(&visit.call).await {
        Ok(()) => Redirect::to("/me?note=verify-sent").into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

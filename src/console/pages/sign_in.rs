//! The pages of those who are not signed in yet: sign in, sign up, links.

use askama::Template;
use axum::extract::{Form, Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum_extra::extract::CookieJar;
use serde::Deserialize;

use super::visit::{Page, Visit, local_path, render, status_of};
use crate::config::SignUp;
use crate::console::operations::people::PersonInput;
use crate::console::operations::{invitations, people, session};
use crate::console::refusal::Refusal;
use crate::console::sessions::ended_cookie;
use crate::console::texts::fill;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    page: Page,
    login: String,
    next: String,
    sign_up: SignUp,
}

#[derive(Deserialize, Default)]
pub struct NextQuery {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub struct SignInForm {
    #[serde(default)]
    login: String,
    #[serde(default)]
    password: String,
    #[serde(default)]
    next: String,
}

pub async fn start(visit: Visit) -> Response {
    match visit.page.person {
        Some(_) => Redirect::to("/keys").into_response(),
        None => Redirect::to("/sign-in").into_response(),
    }
}

pub async fn not_found(visit: Visit) -> Response {
    visit.refuse(&Refusal::NotFound)
}

pub async fn show(visit: Visit, Query(query): Query<NextQuery>) -> Response {
    if visit.page.person.is_some() {
        return Redirect::to(local_path(&query.next)).into_response();
    }
    let template = SignInPage {
        sign_up: visit.call.console.settings.sign_up,
        page: visit.page,
        login: String::new(),
        next: query.next,
    };
    render(&template, StatusCode::OK)
}

pub async fn submit(visit: Visit, Form(form): Form<SignInForm>) -> Response {
    match session::sign_in(&visit.call, &form.login, &form.password).await {
        Ok(begun) => visit.begin(begun, &form.next),
        Err(refusal) => {
            let template = SignInPage {
                sign_up: visit.call.console.settings.sign_up,
                page: visit.page.with_problem(&refusal),
                login: form.login,
                next: form.next,
            };
            render(&template, status_of(&refusal))
        }
    }
}

pub async fn sign_out(visit: Visit) -> Response {
    // Who is signed out already is where he wants to be.
    if let Err(refusal @ Refusal::Unavailable) = session::sign_out(&visit.call).await {
        return visit.refuse(&refusal);
    }
    let jar = CookieJar::new().add(ended_cookie(&visit.call.console.settings));
    (jar, Redirect::to("/sign-in")).into_response()
}

/// The form of a new account.
#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub struct AccountForm {
    handle: String,
    display: String,
    email: String,
    password: String,
}

impl AccountForm {
    fn input(&self) -> PersonInput {
        PersonInput {
            handle: self.handle.clone(),
            display: self.display.clone(),
            email: self.email.clone(),
        }
    }
}

#[derive(Template)]
#[template(path = "sign_up.html")]
struct SignUpPage {
    page: Page,
    title: &'static str,
    lead: String,
    action: String,
    form: AccountForm,
    fixed_email: Option<String>,
}

fn sign_up_page(page: Page, form: AccountForm) -> SignUpPage {
    SignUpPage {
        title: page.texts.sign_up,
        lead: page.texts.sign_up_lead.to_owned(),
        action: "/sign-up".to_owned(),
        page,
        form,
        fixed_email: None,
    }
}

pub async fn show_sign_up(visit: Visit) -> Response {
    if visit.call.console.settings.sign_up != SignUp::Open {
        return visit.refuse(&Refusal::SignUpClosed);
    }
    render(
        &sign_up_page(visit.page, AccountForm::default()),
        StatusCode::OK,
    )
}

pub async fn sign_up(visit: Visit, Form(form): Form<AccountForm>) -> Response {
    match people::sign_up(&visit.call, form.input(), &form.password).await {
        Ok(begun) => visit.begin(begun, "/"),
        Err(refusal @ Refusal::SignUpClosed) => visit.refuse(&refusal),
        Err(refusal) => {
            let page = visit.page.with_problem(&refusal);
            render(&sign_up_page(page, form), status_of(&refusal))
        }
    }
}

pub async fn show_invitation(visit: Visit, Path(token): Path<String>) -> Response {
    invitation_page(visit, &token, AccountForm::default(), None).await
}

/// The page of an invitation, with what was wrong in the form.
async fn invitation_page(
    visit: Visit,
    token: &str,
    form: AccountForm,
    problem: Option<Refusal>,
) -> Response {
    let invitation = match invitations::find_invitation(&visit.call, token).await {
        Ok(invitation) => invitation,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let status = problem.as_ref().map_or(StatusCode::OK, status_of);
    let page = match &problem {
        Some(refusal) => visit.page.with_problem(refusal),
        None => visit.page,
    };
    let template = SignUpPage {
        title: page.texts.invitation_title,
        lead: fill(page.texts.invitation_lead, &invitation.made_by),
        action: format!("/invitation/{token}"),
        page,
        form,
        fixed_email: invitation.email,
    };
    render(&template, status)
}

pub async fn accept(
    visit: Visit,
    Path(token): Path<String>,
    Form(form): Form<AccountForm>,
) -> Response {
    match invitations::accept(&visit.call, &token, form.input(), &form.password).await {
        Ok(begun) => visit.begin(begun, "/"),
        Err(refusal) => invitation_page(visit, &token, form, Some(refusal)).await,
    }
}

#[derive(Template)]
#[template(path = "setup.html")]
struct SetupPage {
    page: Page,
    handle: String,
    lead: String,
    action: String,
}

#[derive(Deserialize)]
pub struct PasswordForm {
    #[serde(default)]
    password: String,
    #[serde(default)]
    next: String,
}

pub async fn show_setup(visit: Visit, Path(token): Path<String>) -> Response {
    setup_page(visit, &token, None).await
}

async fn setup_page(visit: Visit, token: &str, problem: Option<Refusal>) -> Response {
    let person = match people::find_setup_link(&visit.call, token).await {
        Ok(person) => person,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let status = problem.as_ref().map_or(StatusCode::OK, status_of);
    let page = match &problem {
        Some(refusal) => visit.page.with_problem(refusal),
        None => visit.page,
    };
    let template = SetupPage {
        lead: fill(page.texts.setup_lead, &person.handle),
        action: format!("/setup/{token}"),
        page,
        handle: person.handle,
    };
    render(&template, status)
}

pub async fn choose_password(
    visit: Visit,
    Path(token): Path<String>,
    Form(form): Form<PasswordForm>,
) -> Response {
    match people::use_setup_link(&visit.call, &token, &form.password).await {
        Ok(begun) => visit.begin(begun, "/"),
        Err(refusal) => setup_page(visit, &token, Some(refusal)).await,
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    page: Page,
    next: String,
}

pub async fn show_confirm(visit: Visit, Query(query): Query<NextQuery>) -> Response {
    if let Err(refusal) = session::current(&visit.call).await {
        return visit.refuse(&refusal);
    }
    let next = local_path(&query.next).to_owned();
    render(
        &ConfirmPage {
            page: visit.page,
            next,
        },
        StatusCode::OK,
    )
}

pub async fn confirm(visit: Visit, Form(form): Form<PasswordForm>) -> Response {
    let next = local_path(&form.next).to_owned();
    match session::confirm_password(&visit.call, &form.password).await {
        Ok(()) => Redirect::to(&next).into_response(),
        Err(refusal @ Refusal::SignInNeeded) => visit.refuse(&refusal),
        Err(refusal) => {
            let page = visit.page.with_problem(&refusal);
            render(&ConfirmPage { page, next }, status_of(&refusal))
        }
    }
}

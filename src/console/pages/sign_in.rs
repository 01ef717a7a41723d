//! The pages of those who are not signed in yet: sign in, sign up, links.

use askama::Template;
use axum::extract::{Form, Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum_extra::extract::CookieJar;
use serde::Deserialize;

use super::joining::show_join;
use super::mail::SentPage;
use super::usage::link;
use super::visit::{Page, Visit, local_path, render, status_of};
use crate::config::SignUp;
use crate::console::operations::people::PersonInput;
use crate::console::operations::{identities, invitations, people, session, sign_up};
use crate::console::refusal::Refusal;
use crate::console::sessions::ended_cookie;
use crate::console::texts::fill;
use crate::console::views::ProviderView;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    page: Page,
    login: String,
    next: String,
    sign_up: SignUp,
    has_mail: bool,
    providers: Vec<ProviderView>,
}

impl SignInPage {
    fn new(visit: Visit, login: String, next: String) -> SignInPage {
        SignInPage {
            sign_up: visit.call.console.settings.sign_up.clone(),
            has_mail: visit.call.console.mailer().is_ok(),
            providers: identities::list_providers(&visit.call),
            page: visit.page,
            login,
            next,
        }
    }
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

pub async fn not_found(visit: Visit) -> Response {
    visit.refuse(&Refusal::NotFound)
}

pub async fn show(visit: Visit, Query(query): Query<NextQuery>) -> Response {
    if visit.page.person.is_some() {
        return Redirect::to(local_path(&query.next)).into_response();
    }
    let template = SignInPage::new(visit, String::new(), query.next);
    render(&template, StatusCode::OK)
}

pub async fn submit(mut visit: Visit, Form(form): Form<SignInForm>) -> Response {
    match session::sign_in(&visit.call, &form.login, &form.password).await {
        Ok(entered) => visit.enter(entered, &form.next),
        Err(refusal) => {
            visit.page = visit.page.with_problem(&refusal);
            let template = SignInPage::new(visit, form.login, form.next);
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
    pub handle: String,
    pub display: String,
    pub(super) email: String,
    pub(super) password: String,
}

impl AccountForm {
    pub fn input(&self) -> PersonInput {
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
    /// For who has an account.
    sign_in: String,
}

fn sign_up_page(page: Page, form: AccountForm) -> SignUpPage {
    SignUpPage {
        title: page.texts.sign_up,
        lead: page.texts.sign_up_lead.to_owned(),
        action: "/sign-up".to_owned(),
        page,
        form,
        fixed_email: None,
        sign_in: "/sign-in".to_owned(),
    }
}

/// Asks for the address that a link is sent to.
#[derive(Template)]
#[template(path = "sign_up_mail.html")]
struct SignUpMailPage {
    page: Page,
    email: String,
    domains: Option<String>,
}

fn sign_up_mail_page(visit: Visit, email: String) -> SignUpMailPage {
    let texts = visit.page.texts;
    SignUpMailPage {
        domains: match &visit.call.console.settings.sign_up {
            SignUp::Domains(domains) => Some(fill(texts.sign_up_domains, domains.join(", "))),
            SignUp::Closed | SignUp::Invite | SignUp::Open => None,
        },
        page: visit.page,
        email,
    }
}

pub async fn show_sign_up(visit: Visit) -> Response {
    match visit.call.console.settings.sign_up {
        SignUp::Closed | SignUp::Invite => visit.refuse(&Refusal::SignUpClosed),
        SignUp::Open | SignUp::Domains(_) if visit.call.console.mailer().is_ok() => {
            render(&sign_up_mail_page(visit, String::new()), StatusCode::OK)
        }
        SignUp::Domains(_) => visit.refuse(&Refusal::MailOff),
        SignUp::Open => render(
            &sign_up_page(visit.page, AccountForm::default()),
            StatusCode::OK,
        ),
    }
}

pub async fn sign_up(mut visit: Visit, Form(form): Form<AccountForm>) -> Response {
    if visit.call.console.mailer().is_ok() {
        return match sign_up::request_sign_up(&visit.call, &form.email).await {
            Ok(()) => {
                let lead = fill(visit.page.texts.sent_sign_up, form.email.trim());
                let page = visit.page;
                render(&SentPage { page, lead }, StatusCode::ACCEPTED)
            }
            Err(refusal @ Refusal::SignUpClosed) => visit.refuse(&refusal),
            Err(refusal) => {
                visit.page = visit.page.with_problem(&refusal);
                render(&sign_up_mail_page(visit, form.email), status_of(&refusal))
            }
        };
    }
    match sign_up::sign_up(&visit.call, form.input(), &form.password).await {
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
    if let (Some(team), Some(_)) = (&invitation.team, &visit.page.person) {
        return show_join(visit.page, token, team, &invitation);
    }
    let status = problem.as_ref().map_or(StatusCode::OK, status_of);
    let page = match &problem {
        Some(refusal) => visit.page.with_problem(refusal),
        None => visit.page,
    };
    // Who has asked for the link by mail was invited by nobody.
    let (title, lead) = match invitation.made_by.as_str() {
        made_by if let Some(team) = &invitation.team => {
            let lead = fill(page.texts.team.invitation_lead, made_by);
            (page.texts.invitation_title, fill(&lead, team))
        }
        "" => (page.texts.finish_title, page.texts.finish_lead.to_owned()),
        made_by => (
            page.texts.invitation_title,
            fill(page.texts.invitation_lead, made_by),
        ),
    };
    let template = SignUpPage {
        title,
        lead,
        sign_in: match invitation.team {
            Some(_) => link("/sign-in", &[("next", &page.path)]),
            None => "/sign-in".to_owned(),
        },
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
        // The page of a link that was sent by mail has another path.
        action: page.path.clone(),
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
        Ok(entered) => visit.enter(entered, "/"),
        Err(refusal) => setup_page(visit, &token, Some(refusal)).await,
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    page: Page,
    next: String,
    has_password: bool,
    providers: Vec<ProviderView>,
}

async fn confirm_page(visit: Visit, next: String, problem: Option<&Refusal>) -> Response {
    let providers = match identities::own_providers(&visit.call).await {
        Ok(providers) => providers,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let person = visit.page.person.as_ref();
    let template = ConfirmPage {
        has_password: person.is_some_and(|person| person.has_password),
        providers,
        page: match problem {
            Some(refusal) => visit.page.with_problem(refusal),
            None => visit.page,
        },
        next,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

pub async fn show_confirm(visit: Visit, Query(query): Query<NextQuery>) -> Response {
    if let Err(refusal) = session::current(&visit.call).await {
        return visit.refuse(&refusal);
    }
    let next = local_path(&query.next).to_owned();
    confirm_page(visit, next, None).await
}

pub async fn confirm(visit: Visit, Form(form): Form<PasswordForm>) -> Response {
    let next = local_path(&form.next).to_owned();
    match session::confirm_password(&visit.call, &form.password).await {
        Ok(()) => Redirect::to(&next).into_response(),
        Err(refusal @ Refusal::SignInNeeded) => visit.refuse(&refusal),
        Err(refusal) => confirm_page(visit, next, Some(&refusal)).await,
    }
}

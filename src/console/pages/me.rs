//! One's own profile, password and sessions.

use askama::Template;
use axum::extract::{Form, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::visit::{Page, Visit, render, status_of};
use crate::console::operations::people::{self, PersonEdit};
use crate::console::operations::{identities, second_factor, session};
use crate::console::refusal::Refusal;
use crate::console::texts::fill;
use crate::console::views::{
    IdentityView, PersonView, ProviderView, SecondFactorView, SessionView,
};

#[derive(Template)]
#[template(path = "me.html")]
struct MePage {
    page: Page,
    lead: String,
    me: PersonView,
    sessions: Vec<SessionView>,
    has_mail: bool,
    factor: SecondFactorView,
    recovery_left: String,
    identities: Vec<IdentityView>,
    /// Those that are not connected yet.
    providers: Vec<ProviderView>,
}

pub async fn show(visit: Visit) -> Response {
    me_page(visit, None).await
}

async fn me_page(visit: Visit, problem: Option<&Refusal>) -> Response {
    let found = async {
        let me = session::current(&visit.call).await?;
        let sessions = session::list_sessions(&visit.call).await?;
        let factor = second_factor::get_second_factor(&visit.call).await?;
        let identities = identities::list_identities(&visit.call).await?;
        let own = identities::own_providers(&visit.call).await?;
        Ok::<_, Refusal>((me, sessions, factor, identities, own))
    };
    let (me, sessions, factor, identities, own) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let mut providers = identities::list_providers(&visit.call);
    providers.retain(|provider| {
        let mut own = own.iter();
        own.all(|own| own.name != provider.name)
    });
    let has_mail = visit.call.console.mailer().is_ok();
    let page = visit.page.in_section("me");
    let page = match problem {
        Some(refusal) => page.with_problem(refusal),
        None => page,
    };
    let recovery_left = fill(page.texts.recovery_left, factor.recovery_codes_left);
    let template = MePage {
        lead: fill(page.texts.me_lead, &me.handle),
        page,
        me,
        sessions,
        has_mail,
        recovery_left,
        factor,
        identities,
        providers,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

#[derive(Deserialize)]
pub struct ProfileForm {
    #[serde(default)]
    display: String,
    #[serde(default)]
    email: String,
}

pub async fn change(visit: Visit, Form(form): Form<ProfileForm>) -> Response {
    let edit = PersonEdit {
        display: Some(form.display),
        email: Some(form.email),
        ..PersonEdit::default()
    };
    let asked = edit
        .email
        .as_deref()
        .unwrap_or_default()
        .trim()
        .to_lowercase();
    match people::change_me(&visit.call, edit).await {
        Ok(me) if !asked.is_empty() && me.email.as_ref() != Some(&asked) => {
            Redirect::to("/me?note=verify-sent").into_response()
        }
        Ok(_) => Redirect::to("/me?note=saved").into_response(),
        Err(refusal @ Refusal::SignInNeeded) => visit.refuse(&refusal),
        Err(refusal) => me_page(visit, Some(&refusal)).await,
    }
}

#[derive(Deserialize)]
pub struct NewPasswordForm {
    #[serde(default)]
    old: String,
    #[serde(default)]
    new: String,
}

pub async fn change_password(mut visit: Visit, Form(form): Form<NewPasswordForm>) -> Response {
    match people::change_password(&visit.call, &form.old, &form.new).await {
        Ok(begun) => visit.begin(begun, "/me?note=saved"),
        Err(refusal @ Refusal::SignInNeeded) => {
            "/me".clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
        Err(refusal) => me_page(visit, Some(&refusal)).await,
    }
}

pub async fn end_session(visit: Visit, Path(id): Path<String>) -> Response {
    match session::end_session(&visit.call, &id).await {
        Ok(()) => Redirect::to("/me").into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

//! Joining a team with the account that one has: by a link, or by one's own proven address.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};

use super::teams::{SECTION, team_path};
use super::visit::{Page, Visit, render};
use crate::console::operations::team_invitations;
use crate::console::refusal::Refusal;
use crate::console::texts::fill;
use crate::console::views::{InvitationView, MembershipView};

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage {
    page: Page,
    title: String,
    lead: String,
    own: String,
    role: &'static str,
    action: String,
}

/// Asks somebody who is signed in whether to join.
pub fn show_join(page: Page, token: &str, team: &str, invitation: &InvitationView) -> Response {
    let page = page.in_section(SECTION);
    let texts = &page.texts.team;
    let person = page.person.as_ref();
    let template = JoinPage {
        title: fill(texts.join_title, team),
        lead: fill(texts.join_lead, &invitation.made_by),
        own: person.map_or_else(String::new, |person| fill(texts.join_own, &person.handle)),
        role: texts.role_word(invitation.team_role.unwrap_or_default()),
        action: format!("/invitation/{token}/join"),
        page,
    };
    render(&template, StatusCode::OK)
}

fn joined(visit: &Visit, outcome: Result<MembershipView, Refusal>) -> Response {
    match outcome {
        Ok(joined) => {
            let path = format!("{}?note=joined", team_path(&joined.account));
            Redirect::to(&path).into_response()
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn join(mut visit: Visit, Path(token): Path<String>) -> Response {
    visit.page.path = format!("/invitation/{token}");
    let outcome = team_invitations::join_team(&visit.call, &token).await;
    joined(&visit, outcome)
}

pub async fn take_up(mut visit: Visit, Path(id): Path<String>) -> Response {
    "/teams".clone_into(&mut visit.page.path);
    let outcome = team_invitations::take_up_invitation(&visit.call, &id).await;
    joined(&visit, outcome)
}

pub async fn decline(mut visit: Visit, Path(id): Path<String>) -> Response {
    "/teams".clone_into(&mut visit.page.path);
    match team_invitations::decline_invitation(&visit.call, &id).await {
        Ok(()) => Redirect::to("/teams").into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

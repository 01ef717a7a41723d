//! The forms of a team's page: who belongs to it, and who is invited.

use axum::extract::{Form, Path};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::link::show_link;
use super::teams::{SECTION, refuse_form, team_path};
use super::visit::Visit;
use crate::console::operations::{team_invitations, teams};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::CreatedInvitation;
use crate::store::MembershipRole;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct MemberForm {
    /// A username, or an e-mail address.
    person: String,
    role: String,
}

impl MemberForm {
    fn role(&self) -> Result<MembershipRole, Refusal> {
        let role = MembershipRole::from_word(&self.role);
        role.ok_or_else(|| InputProblem::TeamRole.into())
    }
}

fn saved(team: &str) -> Response {
    Redirect::to(&format!("{}?note=saved", team_path(team))).into_response()
}

pub async fn add(visit: Visit, Path(team): Path<String>, Form(form): Form<MemberForm>) -> Response {
    let added = async { teams::add_member(&visit.call, &team, &form.person, form.role()?).await };
    match added.await {
        Ok(added) => match added.invitation {
            Some(invitation) => invited(visit, &team, invitation),
            None => saved(&team),
        },
        Err(refusal) => refuse_form(visit, &team, form.person, &refusal).await,
    }
}

/// Shows the link of an invitation, if it is to be shown.
fn invited(visit: Visit, team: &str, invitation: CreatedInvitation) -> Response {
    let back = team_path(team);
    match invitation.link {
        Some(link) => {
            let page = visit.page.in_section(SECTION);
            let lead = page.texts.team.link_lead;
            show_link(page, link, lead, invitation.mailed_to, back)
        }
        None => Redirect::to(&format!("{back}?note=invited")).into_response(),
    }
}

pub async fn change(
    visit: Visit,
    Path((team, handle)): Path<(String, String)>,
    Form(form): Form<MemberForm>,
) -> Response {
    let changed = async { teams::change_member(&visit.call, &team, &handle, form.role()?).await };
    match changed.await {
        Ok(_) => saved(&team),
        Err(refusal) => refuse_form(visit, &team, String::new(), &refusal).await,
    }
}

pub async fn remove(visit: Visit, Path((team, handle)): Path<(String, String)>) -> Response {
    match teams::remove_member(&visit.call, &team, &handle).await {
        Ok(()) => match visit.call.signed_in() {
            Ok(signed_in) if signed_in.person.handle == handle => {
                Redirect::to("/teams?note=left").into_response()
            }
            _ => saved(&team),
        },
        Err(refusal) => refuse_form(visit, &team, String::new(), &refusal).await,
    }
}

/// An invitation by a link that is for nobody in particular.
pub async fn invite(
    visit: Visit,
    Path(team): Path<String>,
    Form(form): Form<MemberForm>,
) -> Response {
    let made = async {
        let role = form.role()?;
        team_invitations::invite_to_team(&visit.call, &team, &form.person, role).await
    };
    match made.await {
        Ok(invitation) => invited(visit, &team, invitation),
        Err(refusal) => refuse_form(visit, &team, form.person, &refusal).await,
    }
}

pub async fn withdraw(visit: Visit, Path((team, id)): Path<(String, String)>) -> Response {
    match team_invitations::withdraw_from_team(&visit.call, &team, &id).await {
        Ok(()) => saved(&team),
        Err(refusal) => refuse_form(visit, &team, String::new(), &refusal).await,
    }
}

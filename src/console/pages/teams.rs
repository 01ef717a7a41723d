//! Teams: the list, a new team, and one team.

use askama::Template;
use axum::extract::{Form, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::accounts::CapForm;
use super::usage::link;
use super::visit::{Page, Visit, render, status_of};
use crate::config::SignUp;
use crate::console::operations::accounts::{self, AccountEdit};
use crate::console::operations::{keys, team_invitations, teams};
use crate::console::refusal::Refusal;
use crate::console::views::{AccountSpendingView, AccountView, InvitationView, MemberView};

pub const SECTION: &str = "teams";

#[derive(Template)]
#[template(path = "teams.html")]
struct TeamsPage {
    page: Page,
    teams: Vec<AccountView>,
    /// To who asks.
    invitations: Vec<InvitationView>,
    form: TeamForm,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct TeamForm {
    name: String,
    owner: String,
}

pub async fn list(visit: Visit) -> Response {
    teams_page(visit, TeamForm::default(), None).await
}

async fn teams_page(visit: Visit, form: TeamForm, problem: Option<&Refusal>) -> Response {
    let found = async {
        let accounts = keys::list_accounts(&visit.call).await?;
        let invitations = team_invitations::list_own_invitations(&visit.call).await?;
        Ok::<_, Refusal>((accounts, invitations))
    };
    let (accounts, invitations) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let page = visit.page.in_section(SECTION);
    let template = TeamsPage {
        page: match problem {
            Some(refusal) => page.with_problem(refusal),
            None => page,
        },
        teams: accounts.into_iter().filter(AccountView::is_team).collect(),
        invitations,
        form,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

pub async fn create(mut visit: Visit, Form(form): Form<TeamForm>) -> Response {
    match teams::create_team(&visit.call, &form.name, &form.owner).await {
        Ok(team) => Redirect::to(&team_path(&team.account.name)).into_response(),
        Err(refusal @ (Refusal::Invalid(_) | Refusal::HandleTaken)) => {
            teams_page(visit, form, Some(&refusal)).await
        }
        Err(refusal) => {
            "/teams".clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

/// Names of teams are plain.
pub fn team_path(name: &str) -> String {
    format!("/teams/{name}")
}

#[derive(Template)]
#[template(path = "team.html")]
struct TeamPage {
    page: Page,
    account: AccountSpendingView,
    cap_form: CapForm,
    members: Vec<MemberView>,
    invitations: Vec<InvitationView>,
    may_manage: bool,
    /// Nobody can be invited where accounts are closed.
    may_invite: bool,
    /// What was typed, if it was refused.
    who: String,
}

impl TeamPage {
    fn is_own(&self, member: &MemberView) -> bool {
        let person = self.page.person.as_ref();
        person.is_some_and(|person| person.handle == member.handle)
    }

    fn usage(&self, path: &str) -> String {
        link(path, &[("account", &self.account.account.name)])
    }
}

pub async fn show(visit: Visit, Path(name): Path<String>) -> Response {
    team_page(visit, &name, String::new(), None).await
}

/// The page of a team, with what was refused on it.
pub async fn team_page(
    visit: Visit,
    name: &str,
    who: String,
    problem: Option<&Refusal>,
) -> Response {
    let may_manage = visit.call.check_may_manage(name).await.is_ok();
    let found = async {
        let account = accounts::get_account(&visit.call, name).await?;
        if !account.account.is_team() {
            return Err(Refusal::NotFound);
        }
        let members = teams::list_members(&visit.call, name).await?;
        let invitations = match may_manage {
            true => team_invitations::list_team_invitations(&visit.call, name).await?,
            false => Vec::new(),
        };
        Ok::<_, Refusal>((account, members, invitations))
    };
    let (account, members, invitations) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let may_invite = visit.call.console.settings.sign_up != SignUp::Closed;
    let page = visit.page.in_section(SECTION);
    let template = TeamPage {
        page: match problem {
            Some(refusal) => page.with_problem(refusal),
            None => page,
        },
        cap_form: CapForm::of(&account, team_path(name)),
        account,
        members,
        invitations,
        may_manage,
        may_invite,
        who,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

/// What follows a form of a team that was refused: its page with the reason, or the password first.
pub async fn refuse_form(mut visit: Visit, name: &str, who: String, refusal: &Refusal) -> Response {
    match refusal {
        Refusal::Invalid(_)
        | Refusal::AlreadyMember
        | Refusal::LastOwner
        | Refusal::TooManyInvitations(_)
        | Refusal::TooManyAttempts(_) => team_page(visit, name, who, Some(refusal)).await,
        _ => {
            visit.page.path = team_path(name);
            visit.refuse(refusal)
        }
    }
}

#[derive(Deserialize)]
pub struct StateForm {
    disabled: bool,
}

pub async fn set_state(
    visit: Visit,
    Path(name): Path<String>,
    Form(form): Form<StateForm>,
) -> Response {
    let edit = AccountEdit {
        disabled: Some(form.disabled),
        ..AccountEdit::default()
    };
    match accounts::change_account(&visit.call, &name, edit).await {
        Ok(_) => Redirect::to(&format!("{}?note=saved", team_path(&name))).into_response(),
        Err(refusal) => refuse_form(visit, &name, String::new(), &refusal).await,
    }
}

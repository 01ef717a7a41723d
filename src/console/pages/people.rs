//! People and invitations, for administrators.

use askama::Template;
use axum::extract::{Form, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::accounts::CapForm;
use super::link::show_link;
use super::visit::{Page, Visit, render, status_of};
use crate::config::SignUp;
use crate::console::operations::people::{self, PersonEdit};
use crate::console::operations::{accounts, invitations};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{AccountSpendingView, InvitationView, LinkView, PersonView};
use crate::store::PersonRole;

pub const SECTION: &str = "people";

#[derive(Template)]
#[template(path = "people.html")]
struct PeoplePage {
    page: Page,
    people: Vec<PersonView>,
    invitations: Vec<InvitationView>,
    may_invite: bool,
    has_mail: bool,
    email: String,
}

#[derive(Template)]
#[template(path = "person.html")]
struct PersonPage {
    page: Page,
    person: PersonView,
    account: AccountSpendingView,
    cap_form: CapForm,
}

pub async fn list(visit: Visit) -> Response {
    people_page(visit, String::new(), None).await
}

async fn people_page(visit: Visit, email: String, problem: Option<&Refusal>) -> Response {
    let found = async {
        let people = people::list_people(&visit.call).await?;
        let invitations = invitations::list_invitations(&visit.call).await?;
        Ok::<_, Refusal>((people, invitations))
    };
    let (people, invitations) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let may_invite = visit.call.console.settings.sign_up != SignUp::Closed;
    let has_mail = visit.call.console.mailer().is_ok();
    let page = visit.page.in_section(SECTION);
    let page = match problem {
        Some(refusal) => page.with_problem(refusal),
        None => page,
    };
    let template = PeoplePage {
        page,
        people,
        invitations,
        may_invite,
        has_mail,
        email,
    };
    render(&template, problem.map_or(StatusCode::OK, status_of))
}

#[derive(Deserialize)]
pub struct InviteForm {
    #[serde(default)]
    email: String,
    #[serde(default)]
    role: String,
}

pub async fn invite(mut visit: Visit, Form(form): Form<InviteForm>) -> Response {
    let invited = async {
        let role = PersonRole::from_word(&form.role).ok_or(InputProblem::Role)?;
        invitations::invite(&visit.call, &form.email, role).await
    };
    match invited.await {
        Ok(created) => match created.link {
            Some(link) => link_page(visit, link, created.mailed_to),
            None => Redirect::to("/people").into_response(),
        },
        Err(refusal @ Refusal::Invalid(_)) => people_page(visit, form.email, Some(&refusal)).await,
        Err(refusal) => {
            "/people".clone_into(&mut visit.page.path);
            visit.refuse(&refusal)
        }
    }
}

fn link_page(visit: Visit, link: LinkView, mailed_to: Option<String>) -> Response {
    let page = visit.page.in_section(SECTION);
    let lead = page.texts.link_lead;
    show_link(page, link, lead, mailed_to, "/people".to_owned())
}

pub async fn withdraw(visit: Visit, Path(id): Path<String>) -> Response {
    match invitations::withdraw(&visit.call, &id).await {
        Ok(()) => Redirect::to("/people").into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn show(visit: Visit, Path(id): Path<String>) -> Response {
    person_page(visit, &id, None).await
}

async fn person_page(visit: Visit, id: &str, problem: Option<&Refusal>) -> Response {
    let found = async {
        let person = people::get_person(&visit.call, id).await?;
        let account = accounts::get_account(&visit.call, &person.handle).await?;
        Ok::<_, Refusal>((person, account))
    };
    let (person, account) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let page = visit.page.in_section(SECTION);
    let page = match problem {
        Some(refusal) => page.with_problem(refusal),
        None => page,
    };
    let status = problem.map_or(StatusCode::OK, status_of);
    let template = PersonPage {
        page,
        cap_form: CapForm::of(&account, format!("/people/{id}")),
        person,
        account,
    };
    render(&template, status)
}

#[derive(Deserialize)]
pub struct PersonForm {
    role: Option<String>,
    disabled: Option<bool>,
}

pub async fn change(
    visit: Visit,
    Path(id): Path<String>,
    Form(form): Form<PersonForm>,
) -> Response {
    let changed = async {
        let role = form.role.as_deref();
        let role = role.map(|word| PersonRole::from_word(word).ok_or(InputProblem::Role));
        let edit = PersonEdit {
            role: role.transpose()?,
            disabled: form.disabled,
            ..PersonEdit::default()
        };
        people::change_person(&visit.call, &id, edit).await
    };
    match changed.await {
        Ok(_) => Redirect::to(&format!("/people/{id}?note=saved")).into_response(),
        Err(refusal @ (Refusal::Invalid(_) | Refusal::LastAdministrator)) => {
            person_page(visit, &id, Some(&refusal)).await
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn create_link(mut visit: Visit, Path(id): Path<String>) -> Response {
    match people::create_setup_link(&visit.call, &id).await {
        Ok(link) => link_page(visit, link, None),
        Err(refusal) => {
            visit.page.path = format!("/people/{id}");
            visit.refuse(&refusal)
        }
    }
}

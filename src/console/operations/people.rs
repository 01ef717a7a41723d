//! People: made by an administrator, by the command line or by themselves, changed and disabled.

use super::attempt::SignInAttempt;
use super::input;
use super::mail::notify_password;
use super::session::{Begun, Entered, begin, enter};
use super::verification::send_verification;
use crate::console::actor::{Actor, ConsoleCall, now};
use crate::console::refusal::Refusal;
use crate::console::tokens::{NewToken, token_hash};
use crate::console::views::{CreatedPerson, LinkView, Moment, PersonView};
use crate::store::{LinkPurpose, NewLink, NewPerson, PersonChange, PersonRole, StoredLink};

/// For how long the link to choose a password works, in milliseconds.
const SETUP_FOR: i64 = 24 * 3600 * 1000;

/// Where the links lead to choose a password, and another one.
const SETUP_PATH: &str = "/setup/";
pub(super) const RESET_PATH: &str = "/reset/";

/// What a person is made from.
#[derive(Debug, Clone, Default)]
pub struct PersonInput {
    pub handle: String,
    pub display: String,
    pub email: String,
}

/// What a person changes of herself, and an administrator of others; `None`: unchanged.
#[derive(Debug, Clone, Default)]
pub struct PersonEdit {
    pub display: Option<String>,
    pub email: Option<String>,
    pub role: Option<PersonRole>,
    pub disabled: Option<bool>,
}

/// Makes an account for somebody else, who chooses a password by a link.
pub async fn create_person(
    call: &ConsoleCall,
    input: PersonInput,
    role: PersonRole,
) -> Result<CreatedPerson, Refusal> {
    call.check_admin()?;
    call.check_stepped_up()?;
    let handle = input::handle(&input.handle)?;
    let person = NewPerson {
        display: input::display(&input.display, &handle)?,
        email: input::email(&input.email)?,
        is_verified: false,
        password: None,
        role,
        handle,
    };
    let token = NewToken::generate();
    let expires = now() + SETUP_FOR;
    let entry = call.audit(
        "person.create",
        &person.handle,
        format!("role {}", role.word()),
    );
    let store = &call.console.store;
    let link = NewLink::new(LinkPurpose::Setup, token.sha256, expires);
    let made = store.create_person_with_link(&person, link, &entry);
    Ok(CreatedPerson {
        person: PersonView::from(&made.await?),
        link: setup_link(call, &token.token, expires),
    })
}

/// Makes a new link for somebody to choose a password, who has lost it or the link before.
pub async fn create_setup_link(call: &ConsoleCall, id: &str) -> Result<LinkView, Refusal> {
    call.check_admin()?;
    call.check_stepped_up()?;
    let person = call.console.store.person(id).await?;
    let person = person.ok_or(Refusal::NotFound)?;
    let token = NewToken::generate();
    let expires = now() + SETUP_FOR;
    let entry = call.audit("person.setup_link", &person.handle, String::new());
    let link = NewLink {
        person: Some(person.id),
        ..NewLink::new(LinkPurpose::Setup, token.sha256, expires)
    };
    call.console.store.create_link(&link, &entry).await?;
    Ok(setup_link(call, &token.token, expires))
}

fn setup_link(call: &ConsoleCall, token: &str, expires: i64) -> LinkView {
    LinkView {
        url: call.console.url(&format!("{SETUP_PATH}{token}")),
        expires: Moment(expires),
    }
}

/// Whose password a link is for. Looking does not use it up.
pub async fn find_setup_link(call: &ConsoleCall, token: &str) -> Result<PersonView, Refusal> {
    let (_, link) = password_link(call, token).await?;
    let person = link.person.ok_or(Refusal::LinkOver)?;
    let person = call.console.store.person(&person).await?;
    let person = person.filter(|person| person.disabled.is_none());
    person
        .as_ref()
        .map(PersonView::from)
        .ok_or(Refusal::LinkOver)
}

/// The link of an administrator, or one that was sent by mail.
async fn password_link(
    call: &ConsoleCall,
    token: &str,
) -> Result<(LinkPurpose, StoredLink), Refusal> {
    let sha256 = token_hash(token);
    for purpose in [LinkPurpose::Setup, LinkPurpose::Reset] {
        if let Some(link) = call.console.store.link(purpose, &sha256).await? {
            return Ok((purpose, link));
        }
    }
    Err(Refusal::LinkOver)
}

/// Chooses a password by a link, and signs in, as far as the link proves it.
pub async fn use_setup_link(
    call: &ConsoleCall,
    token: &str,
    password: &str,
) -> Result<Entered, Refusal> {
    let person = find_setup_link(call, token).await?;
    let (purpose, _) = password_link(call, token).await?;
    let hash = call.console.passwords.hash(password).await?;
    let entry = call.audit("person.choose_password", &person.handle, String::new());
    let (store, sha256) = (&call.console.store, token_hash(token));
    let used = store.use_password_link(purpose, &sha256, &hash, &entry);
    let person = used.await?;
    notify_password(call, &person);
    enter(call, &person, now()).await
}

/// Changes one's own password; every other session ends.
pub async fn change_password(call: &ConsoleCall, old: &str, new: &str) -> Result<Begun, Refusal> {
    let person = &call.signed_in()?.person;
    let attempt = SignInAttempt::begin(call)?.of_login(&person.id)?;
    let hash = person.password.as_deref();
    if !call.console.passwords.verify(old, hash).await {
        return Err(Refusal::WrongLogin);
    }
    attempt.give_back();
    let hash = call.console.passwords.hash(new).await?;
    let entry = call.audit("person.change_password", &person.handle, String::new());
    let changed = call.console.store.set_password(&person.id, &hash, &entry);
    let person = changed.await?;
    notify_password(call, &person);
    begin(call, &person, now()).await
}

/// Changes what others see of oneself. Where the console sends mail, another address is one's own once it is proven.
pub async fn change_me(call: &ConsoleCall, edit: PersonEdit) -> Result<PersonView, Refusal> {
    let person = call.signed_in()?.person.clone();
    let mut edit = PersonEdit {
        role: None,
        disabled: None,
        ..edit
    };
    if let Some(text) = &edit.email
        && call.console.mailer().is_ok()
        && let Some(email) = input::email(text)?
    {
        if person.email.as_ref() != Some(&email) {
            send_verification(call, person.clone(), email)?;
        }
        edit.email = None;
    }
    apply(call, &person.id, &person.handle, edit).await
}

/// All people.
pub async fn list_people(call: &ConsoleCall) -> Result<Vec<PersonView>, Refusal> {
    call.check_admin()?;
    let people = call.console.store.people().await?;
    Ok(people.iter().map(PersonView::from).collect())
}

pub async fn get_person(call: &ConsoleCall, id: &str) -> Result<PersonView, Refusal> {
    call.check_admin()?;
    let person = call.console.store.person(id).await?;
    person
        .as_ref()
        .map(PersonView::from)
        .ok_or(Refusal::NotFound)
}

/// Changes somebody: role, or whether the account is disabled. The last administrator stays one.
pub async fn change_person(
    call: &ConsoleCall,
    id: &str,
    edit: PersonEdit,
) -> Result<PersonView, Refusal> {
    call.check_admin()?;
    call.check_stepped_up()?;
    let person = call.console.store.person(id).await?;
    let person = person.ok_or(Refusal::NotFound)?;
    apply(call, id, &person.handle, edit).await
}

async fn apply(
    call: &ConsoleCall,
    id: &str,
    handle: &str,
    edit: PersonEdit,
) -> Result<PersonView, Refusal> {
    let display = edit.display.as_deref();
    let change = PersonChange {
        display: display
            .map(|text| input::display(text, handle))
            .transpose()?,
        email: edit.email.as_deref().map(input::email).transpose()?,
        role: edit.role,
        is_disabled: edit.disabled,
    };
    let mut words = Vec::new();
    words.extend(change.display.as_ref().map(|_| "display".to_owned()));
    words.extend(change.email.as_ref().map(|_| "email".to_owned()));
    words.extend(edit.role.map(|role| format!("role {}", role.word())));
    words.extend(edit.disabled.map(|disabled| format!("disabled {disabled}")));
    let entry = call.audit("person.change", handle, words.join(", "));
    let changed = call.console.store.change_person(id, &change, &entry);
    Ok(PersonView::from(&changed.await?))
}

/// Finds somebody by username, on the command line.
pub async fn find_person(call: &ConsoleCall, login: &str) -> Result<PersonView, Refusal> {
    match call.actor {
        Actor::CommandLine => {}
        Actor::Person(_) | Actor::Anonymous => return Err(Refusal::Forbidden),
    }
    let person = call.console.store.person_by_login(login).await?;
    person
        .as_ref()
        .map(PersonView::from)
        .ok_or(Refusal::NotFound)
}

//! People: made by an administrator, by the command line or by themselves, changed and disabled.

use super::input;
use super::session::{Begun, check_attempts, count_attempt};
use crate::config::SignUp;
use crate::console::actor::{Actor, ConsoleCall, now};
use crate::console::refusal::Refusal;
use crate::console::sessions;
use crate::console::tokens::{NewToken, token_hash};
use crate::console::views::{CreatedPerson, LinkView, Moment, PersonView};
use crate::store::{LinkPurpose, NewPerson, PersonChange, PersonRole};

/// For how long the link to choose a password works, in milliseconds.
const SETUP_FOR: i64 = 24 * 3600 * 1000;

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

/// Makes one's own account, where everybody may.
pub async fn sign_up(
    call: &ConsoleCall,
    input: PersonInput,
    password: &str,
) -> Result<Begun, Refusal> {
    if call.console.settings.sign_up != SignUp::Open {
        return Err(Refusal::SignUpClosed);
    }
    let handle = input::handle(&input.handle)?;
    check_attempts(call, &handle)?;
    // Accounts are not made at the speed of the machine, and taken names not looked for.
    count_attempt(call, &handle);
    let person = NewPerson {
        display: input::display(&input.display, &handle)?,
        email: input::email(&input.email)?,
        password: Some(call.console.passwords.hash(password).await?),
        role: PersonRole::Member,
        handle,
    };
    let entry = call.audit("person.sign_up", &person.handle, String::new());
    let person = call.console.store.create_person(&person, &entry).await?;
    let token = sessions::begin(call, &person).await?;
    Ok(Begun {
        person: PersonView::from(&person),
        token,
    })
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
    let made = store.create_person_with_link(&person, &token.sha256, expires, &entry);
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
    let store = &call.console.store;
    let made = store.create_setup_link(&person.id, &token.sha256, expires, &entry);
    made.await?;
    Ok(setup_link(call, &token.token, expires))
}

fn setup_link(call: &ConsoleCall, token: &str, expires: i64) -> LinkView {
    LinkView {
        url: call.console.url(&format!("/setup/{token}")),
        expires: Moment(expires),
    }
}

/// Whose password a link is for. Looking does not use it up.
pub async fn find_setup_link(call: &ConsoleCall, token: &str) -> Result<PersonView, Refusal> {
    let store = &call.console.store;
    let link = store.link(LinkPurpose::Setup, &token_hash(token)).await?;
    let person = link.and_then(|link| link.person).ok_or(Refusal::LinkOver)?;
    let person = store.person(&person).await?;
    let person = person.filter(|person| person.disabled.is_none());
    person
        .as_ref()
        .map(PersonView::from)
        .ok_or(Refusal::LinkOver)
}

/// Chooses a password by a link, and signs in.
pub async fn use_setup_link(
    call: &ConsoleCall,
    token: &str,
    password: &str,
) -> Result<Begun, Refusal> {
    let person = find_setup_link(call, token).await?;
    let hash = call.console.passwords.hash(password).await?;
    let entry = call.audit("person.choose_password", &person.handle, String::new());
    let (store, sha256) = (&call.console.store, token_hash(token));
    let person = store.use_setup_link(&sha256, &hash, &entry).await?;
    let token = sessions::begin(call, &person).await?;
    Ok(Begun {
        person: PersonView::from(&person),
        token,
    })
}

/// Changes one's own password; every other session ends.
pub async fn change_password(call: &ConsoleCall, old: &str, new: &str) -> Result<Begun, Refusal> {
    let person = &call.signed_in()?.person;
    check_attempts(call, &person.handle)?;
    let hash = person.password.as_deref();
    if !call.console.passwords.verify(old, hash).await {
        count_attempt(call, &person.handle);
        return Err(Refusal::WrongLogin);
    }
    let hash = call.console.passwords.hash(new).await?;
    let entry = call.audit("person.change_password", &person.handle, String::new());
    let changed = call.console.store.set_password(&person.id, &hash, &entry);
    let person = changed.await?;
    let token = sessions::begin(call, &person).await?;
    Ok(Begun {
        person: PersonView::from(&person),
        token,
    })
}

/// Changes what others see of oneself.
pub async fn change_me(call: &ConsoleCall, edit: PersonEdit) -> Result<PersonView, Refusal> {
    let person = call.signed_in()?.person.clone();
    let edit = PersonEdit {
        role: None,
        disabled: None,
        ..edit
    };
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

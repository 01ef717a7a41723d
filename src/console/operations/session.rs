//! Signing in and out, and the sessions of a person.

use super::attempt::SignInAttempt;
use crate::console::actor::{ConsoleCall, now};
use crate::console::refusal::Refusal;
use crate::console::sessions;
use crate::console::tokens::NewToken;
use crate::console::views::{PersonView, SessionView};
use crate::store::{LinkPurpose, NewLink, Person};

/// The longest login that is looked up.
const MAX_LOGIN: usize = 254;

/// For how long a sign-in waits for its code, in milliseconds.
const CODE_FOR: i64 = 10 * 60 * 1000;

/// A session that has begun.
pub struct Begun {
    pub person: PersonView,
    /// For the cookie.
    pub token: String,
}

/// What signing in leads to.
pub enum Entered {
    Session(Begun),
    /// A code of the second factor comes next; the token is for a cookie that opens nothing.
    CodeNeeded(String),
}

/// Begins a session.
pub(super) async fn begin(
    call: &ConsoleCall,
    person: &Person,
    stepped_up: i64,
) -> Result<Begun, Refusal> {
    Ok(Begun {
        person: PersonView::from(person),
        token: sessions::begin(call, person, stepped_up).await?,
    })
}

/// Begins a session, or waits for the code of a person who has a second factor.
pub(super) async fn enter(
    call: &ConsoleCall,
    person: &Person,
    stepped_up: i64,
) -> Result<Entered, Refusal> {
    if person.totp.is_none() {
        return begin(call, person, stepped_up).await.map(Entered::Session);
    }
    let token = NewToken::generate();
    let pending = NewLink {
        person: Some(person.id.clone()),
        ..NewLink::new(LinkPurpose::SecondFactor, token.sha256, now() + CODE_FOR)
    };
    let entry = call.audit("session.code_needed", &person.handle, String::new());
    call.console.store.create_link(&pending, &entry).await?;
    Ok(Entered::CodeNeeded(token.token))
}

/// Signs a person in by username or e-mail address. The answer, its status and its work are the same whether the
/// account exists or not.
pub async fn sign_in(call: &ConsoleCall, login: &str, password: &str) -> Result<Entered, Refusal> {
    let login = login.trim().to_lowercase();
    let attempt = SignInAttempt::begin(call)?;
    let person = match login.len() <= MAX_LOGIN {
        true => call.console.store.person_by_login(&login).await?,
        false => None,
    };
    // A username and an e-mail address of one person are one login.
    let tried = person.as_ref().map_or(&*login, |person| &person.id);
    let attempt = attempt.of_login(tried)?;
    let person = person.filter(|person| person.disabled.is_none());
    let hash = person
        .as_ref()
        .and_then(|person| person.password.as_deref());
    let is_right = call.console.passwords.verify(password, hash).await;
    let Some(person) = person.filter(|_| is_right) else {
        return Err(Refusal::WrongLogin);
    };
    attempt.give_back();
    enter(call, &person, now()).await
}

/// Who is signed in.
pub async fn current(call: &ConsoleCall) -> Result<PersonView, Refusal> {
    Ok(PersonView::from(&call.signed_in()?.person))
}

/// Ends the session of the call.
pub async fn sign_out(call: &ConsoleCall) -> Result<(), Refusal> {
    let signed_in = call.signed_in()?;
    let (person, session) = (&signed_in.person, &signed_in.session.id);
    let entry = call.audit("session.end", &person.handle, String::new());
    let store = &call.console.store;
    store.delete_session(&person.id, session, &entry).await?;
    Ok(())
}

/// Enters the password again, for what needs it.
pub async fn confirm_password(call: &ConsoleCall, password: &str) -> Result<(), Refusal> {
    let signed_in = call.signed_in()?;
    let attempt = SignInAttempt::begin(call)?.of_login(&signed_in.person.id)?;
    let hash = signed_in.person.password.as_deref();
    if !call.console.passwords.verify(password, hash).await {
        return Err(Refusal::WrongLogin);
    }
    attempt.give_back();
    let session = &signed_in.session.id;
    call.console.store.step_up_session(session, now()).await?;
    Ok(())
}

/// The sessions of the person who is signed in.
pub async fn list_sessions(call: &ConsoleCall) -> Result<Vec<SessionView>, Refusal> {
    let signed_in = call.signed_in()?;
    let sessions = call.console.store.sessions(&signed_in.person.id, now());
    let sessions = sessions.await?.into_iter();
    let current = &signed_in.session.id;
    Ok(sessions
        .map(|session| SessionView::new(session, current))
        .collect())
}

/// Ends one of one's own sessions.
pub async fn end_session(call: &ConsoleCall, id: &str) -> Result<(), Refusal> {
    let person = &call.signed_in()?.person;
    let entry = call.audit("session.end", &person.handle, String::new());
    let store = &call.console.store;
    match store.delete_session(&person.id, id, &entry).await? {
        true => Ok(()),
        false => Err(Refusal::NotFound),
    }
}

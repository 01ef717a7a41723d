//! Signing in and out, and the sessions of a person.

use std::time::Instant;

use crate::access::client_network;
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
    check_attempts(call, &login)?;
    let person = match login.len() <= MAX_LOGIN {
        true => call.console.store.person_by_login(&login).await?,
        false => None,
    };
    let person = person.filter(|person| person.disabled.is_none());
    let hash = person
        .as_ref()
        .and_then(|person| person.password.as_deref());
    let is_right = call.console.passwords.verify(password, hash).await;
    let Some(person) = person.filter(|_| is_right) else {
        count_attempt(call, &login);
        return Err(Refusal::WrongLogin);
    };
    enter(call, &person, now()).await
}

/// Who is signed in.
pub async fn current(call: &ConsoleCall) -> Result<PersonView, Refusal> {
    Ok(PersonView::from(&call.signed_in()?.person))
}

/// Ends the session of the call.
pub async fn sign_out(call: &ConsoleCall) -> Result<(), Refusal> {
    let signed_in = call.signed_in()?;
    let (person, session) = (&signed_in.person.id, &signed_in.session.id);
    call.console.store.delete_session(person, session).await?;
    Ok(())
}

/// Enters the password again, for what needs it.
pub async fn confirm_password(call: &ConsoleCall, password: &str) -> Result<(), Refusal> {
    let signed_in = call.signed_in()?;
    let handle = &signed_in.person.handle;
    check_attempts(call, handle)?;
    let hash = signed_in.person.password.as_deref();
    if !call.console.passwords.verify(password, hash).await {
        count_attempt(call, handle);
        return Err(Refusal::WrongLogin);
    }
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
    let person = &call.signed_in()?.person.id;
    match call.console.store.delete_session(person, id).await? {
        true => Ok(()),
        false => Err(Refusal::NotFound),
    }
}

/// Refuses an attempt for a while after too many that failed.
pub(super) fn check_attempts(call: &ConsoleCall, login: &str) -> Result<(), Refusal> {
    let now = Instant::now();
    let network = call.remote.map(client_network);
    let by_network = call.console.failures_by_network.wait(network, now);
    let by_login = call.console.failures_by_login.wait(login, now);
    match by_network.max(by_login) {
        Some(wait) => Err(Refusal::TooManyAttempts(wait)),
        None => Ok(()),
    }
}

pub(super) fn count_attempt(call: &ConsoleCall, login: &str) {
    let now = Instant::now();
    let network = call.remote.map(client_network);
    call.console.failures_by_network.count(network, now);
    call.console.failures_by_login.count(login, now);
}

/// The same for a network alone, where the account has a count of its own.
pub(super) fn check_network(call: &ConsoleCall) -> Result<(), Refusal> {
    let network = call.remote.map(client_network);
    let failures = &call.console.failures_by_network;
    match failures.wait(network, Instant::now()) {
        Some(wait) => Err(Refusal::TooManyAttempts(wait)),
        None => Ok(()),
    }
}

pub(super) fn count_network(call: &ConsoleCall) {
    let network = call.remote.map(client_network);
    let failures = &call.console.failures_by_network;
    failures.count(network, Instant::now());
}

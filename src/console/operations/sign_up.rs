//! Accounts that people make for themselves: by a link in a mail, or at once where the console sends none.

use super::attempt::SignInAttempt;
use super::input;
use super::mail::{queue, take_turn};
use super::people::PersonInput;
use super::session::{Begun, begin};
use crate::config::SignUp;
use crate::console::actor::{ConsoleCall, now};
use crate::console::mail::{MailText, Mailer};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::tokens::NewToken;
use crate::store::{LinkPurpose, NewLink, NewPerson, PersonRole};

/// For how long the link works, in milliseconds.
const SIGN_UP_FOR: i64 = 24 * 3600 * 1000;

/// Sends the link with which somebody makes an account of a proven address. Who has one already is told so by mail, and
/// the answer is the same.
pub async fn request_sign_up(call: &ConsoleCall, email: &str) -> Result<(), Refusal> {
    check_open(call)?;
    let mailer = call.console.mailer()?.clone();
    let email = input::email(email)?.ok_or(InputProblem::Email)?;
    check_domain(call, &email)?;
    take_turn(call, &email)?;
    queue(call, "sign up", async move |call| {
        send_link(&call, &mailer, &email).await
    });
    Ok(())
}

async fn send_link(call: &ConsoleCall, mailer: &Mailer, email: &str) -> Result<(), Refusal> {
    let store = &call.console.store;
    if store.person_by_login(email).await?.is_some() {
        let sign_in = call.console.url("/sign-in");
        mailer.send(email, &MailText::known(call.texts, &sign_in));
        return Ok(());
    }
    let token = NewToken::generate();
    let link = NewLink {
        email: Some(email.to_owned()),
        role: Some(PersonRole::Member),
        ..NewLink::new(LinkPurpose::SignUp, token.sha256, now() + SIGN_UP_FOR)
    };
    let entry = call.audit("person.request_sign_up", email, String::new());
    store.create_link(&link, &entry).await?;
    let url = call.console.url(&format!("/invitation/{}", token.token));
    mailer.send(email, &MailText::sign_up(call.texts, &url));
    Ok(())
}

/// Makes one's own account at once, where everybody may and no mail is sent.
pub async fn sign_up(
    call: &ConsoleCall,
    input: PersonInput,
    password: &str,
) -> Result<Begun, Refusal> {
    check_open(call)?;
    if call.console.mailer().is_ok() || call.console.settings.sign_up != SignUp::Open {
        return Err(Refusal::MailFirst);
    }
    let handle = input::handle(&input.handle)?;
    // Accounts are not made at the speed of the machine, and taken names not looked for: it is never given back.
    SignInAttempt::begin(call)?.of_login(&handle)?;
    let person = NewPerson {
        display: input::display(&input.display, &handle)?,
        email: input::email(&input.email)?,
        is_verified: false,
        password: Some(call.console.passwords.hash(password).await?),
        role: PersonRole::Member,
        handle,
    };
    let entry = call.audit("person.sign_up", &person.handle, String::new());
    let person = call.console.store.create_person(&person, &entry).await?;
    begin(call, &person, now()).await
}

/// Goes on where people may make accounts for themselves.
pub(super) fn check_open(call: &ConsoleCall) -> Result<(), Refusal> {
    match call.console.settings.sign_up {
        SignUp::Open | SignUp::Domains(_) => Ok(()),
        SignUp::Closed | SignUp::Invite => Err(Refusal::SignUpClosed),
    }
}

/// Goes on where an address may be that of a new account.
fn check_domain(call: &ConsoleCall, email: &str) -> Result<(), Refusal> {
    match call.console.settings.sign_up.accepts(email) {
        true => Ok(()),
        false => Err(InputProblem::Domain.into()),
    }
}

//! Links by mail to choose another password.

use super::mail::{queue, take_turn};
use super::people::RESET_PATH;
use crate::console::actor::{ConsoleCall, now};
use crate::console::mail::{MailText, Mailer};
use crate::console::refusal::Refusal;
use crate::console::tokens::NewToken;
use crate::store::{LinkPurpose, NewLink};

/// For how long the link works, in milliseconds.
const RESET_FOR: i64 = 30 * 60 * 1000;

/// Sends a link to choose another password, if an account has the login and a verified address. Whoever asks is told
/// the same in any case, and as quickly.
pub async fn request_reset(call: &ConsoleCall, login: &str) -> Result<(), Refusal> {
    let mailer = call.console.mailer()?.clone();
    let login = login.trim().to_lowercase();
    take_turn(call, &login)?;
    queue(call, "reset", async move |call| {
        send_link(&call, &mailer, &login).await
    });
    Ok(())
}

async fn send_link(call: &ConsoleCall, mailer: &Mailer, login: &str) -> Result<(), Refusal> {
    let store = &call.console.store;
    let person = store.person_by_login(login).await?;
    let person = person.filter(|person| person.disabled.is_none());
    let Some(person) = person.filter(|person| person.verified.is_some()) else {
        return Ok(());
    };
    let Some(email) = &person.email else {
        return Ok(());
    };
    call.console.take_mail_of(&person.id)?;
    let token = NewToken::generate();
    let link = NewLink {
        person: Some(person.id.clone()),
        ..NewLink::new(LinkPurpose::Reset, token.sha256, now() + RESET_FOR)
    };
    let entry = call.audit("person.request_reset", &person.handle, String::new());
    store.create_link(&link, &entry).await?;
    let url = call.console.url(&format!("{RESET_PATH}{}", token.token));
    mailer.send(email, &MailText::reset(call.texts, &url));
    Ok(())
}

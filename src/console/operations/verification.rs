//! E-mail addresses, proven by a link that is sent to them.

use super::mail::{queue, take_turn};
use crate::console::actor::{ConsoleCall, now};
use crate::console::mail::{MailText, Mailer};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::tokens::{NewToken, token_hash};
use crate::console::views::{AddressView, PersonView};
use crate::store::{LinkPurpose, NewLink, Person};

/// For how long the link works, in milliseconds.
const VERIFY_FOR: i64 = 24 * 3600 * 1000;

/// Sends the link for one's own address once more.
pub async fn request_verification(call: &ConsoleCall) -> Result<(), Refusal> {
    let person = call.signed_in()?.person.clone();
    let email = person.email.clone().ok_or(InputProblem::Email)?;
    send_verification(call, person, email)
}

/// Sends the link that makes an address that of a person. Until it is used, the person keeps the present one, so that
/// nobody takes an address that is somebody else's.
pub(super) fn send_verification(
    call: &ConsoleCall,
    person: Person,
    email: String,
) -> Result<(), Refusal> {
    let mailer = call.console.mailer()?.clone();
    take_turn(call, &email)?;
    call.console.take_mail_of(&person.id)?;
    queue(call, "verify", async move |call| {
        send_link(&call, &mailer, &person, &email).await
    });
    Ok(())
}

async fn send_link(
    call: &ConsoleCall,
    mailer: &Mailer,
    person: &Person,
    email: &str,
) -> Result<(), Refusal> {
    let store = &call.console.store;
    let owner = store.person_by_login(email).await?;
    if owner.is_some_and(|owner| owner.id != person.id) {
        let sign_in = call.console.url("/sign-in");
        mailer.send(email, &MailText::known(call.texts, &sign_in));
        return Ok(());
    }
    let token = NewToken::generate();
    let link = NewLink {
        person: Some(person.id.clone()),
        email: Some(email.to_owned()),
        ..NewLink::new(LinkPurpose::Verify, token.sha256, now() + VERIFY_FOR)
    };
    let entry = call.audit("person.request_verification", &person.handle, String::new());
    store.create_link(&link, &entry).await?;
    let url = call.console.url(&format!("/verify/{}", token.token));
    mailer.send(email, &MailText::verify(call.texts, &url));
    Ok(())
}

/// The address that a link is for. Looking does not use it up.
pub async fn find_verification(call: &ConsoleCall, token: &str) -> Result<AddressView, Refusal> {
    let store = &call.console.store;
    let link = store.link(LinkPurpose::Verify, &token_hash(token)).await?;
    let email = link.and_then(|link| link.email).ok_or(Refusal::LinkOver)?;
    Ok(AddressView { email })
}

/// Makes the address of a link that of its person, proven. It signs nobody in.
pub async fn verify(call: &ConsoleCall, token: &str) -> Result<PersonView, Refusal> {
    let address = find_verification(call, token).await?;
    let entry = call.audit("person.verify", &address.email, String::new());
    let (store, sha256) = (&call.console.store, token_hash(token));
    let person = store.use_verification(&sha256, &entry).await?;
    Ok(PersonView::from(&person))
}

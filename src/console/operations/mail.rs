//! What everything that sends mail has in common: a turn for who asks, and work that nobody waits for.

use std::time::Instant;

use crate::access::client_network;
use crate::console::actor::ConsoleCall;
use crate::console::mail::MailText;
use crate::console::refusal::Refusal;
use crate::store::Person;

/// Counts a request for mail, or refuses it for a while. The count is that of what was typed, whether it exists or not.
pub(super) fn take_turn(call: &ConsoleCall, typed: &str) -> Result<(), Refusal> {
    let now = Instant::now();
    let network = call.remote.map(client_network);
    let console = &call.console;
    let taken = console.mails_by_network.take(network, now);
    let taken = taken.and_then(|()| {
        let taken = console.mails_by_address.take(typed, now);
        taken.inspect_err(|_| console.mails_by_network.give_back(network))
    });
    taken.map_err(Refusal::TooManyAttempts)
}

/// Looks up and sends beside the request: its duration would tell whether there is an account.
pub(super) fn queue<F>(
    call: &ConsoleCall,
    kind: &'static str,
    work: impl FnOnce(ConsoleCall) -> F + Send + 'static,
) where
    F: Future<Output = Result<(), Refusal>> + Send + 'static,
{
    let work = work(call.clone());
    tokio::spawn(async move {
        if let Err(refusal) = work.await {
            log::warn!("mail ({kind}): not sent: {refusal}");
        }
    });
}

/// Tells a person that the password is another now; whoever did not change it has to know.
pub(super) fn notify_password(call: &ConsoleCall, person: &Person) {
    let verified = person.verified.and(person.email.as_deref());
    if let (Ok(mailer), Some(email)) = (call.console.mailer(), verified) {
        mailer.send(
            email,
            &MailText::password_changed(call.texts, &person.handle),
        );
    }
}

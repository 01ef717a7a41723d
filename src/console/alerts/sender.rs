//! Tells somebody of an alert, once.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::event::AlertEvent;
use crate::console::alert_failure::AlertFailure;
use crate::console::state::Console;
use crate::console::texts::Texts;
use crate::store::{AlertTarget, StoredAlert};

/// Time limit for an attempt, with the lookup of a name and the exchange with a mail server.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a message of an alert to where it goes now, if whoever said so still may. A person of the account gets mail by the
/// own right.
pub async fn send_alert(
    console: &Console,
    alert: &StoredAlert,
    event: &AlertEvent,
    body: &str,
) -> Result<(), AlertFailure> {
    if !alert.is_allowed && !matches!(alert.target, AlertTarget::Person(_)) {
        return Err(AlertFailure::NoRecipient);
    }
    let sending = async {
        match &alert.target {
            AlertTarget::Webhook(url) => {
                let secret = alert.secret.as_deref().unwrap_or_default();
                let message = (event.id.as_str(), body);
                console.webhooks.post(url, secret, message).await
            }
            AlertTarget::Email(email) => mail(console, email, alert, event).await,
            AlertTarget::Person(_) => {
                let email = alert.proven_email.as_deref();
                let email = email.ok_or(AlertFailure::NoRecipient)?;
                mail(console, email, alert, event).await
            }
        }
    };
    let sent = timeout(ATTEMPT_TIMEOUT, sending).await;
    sent.unwrap_or(Err(AlertFailure::Unreachable))
}

async fn mail(
    console: &Console,
    email: &str,
    alert: &StoredAlert,
    event: &AlertEvent,
) -> Result<(), AlertFailure> {
    let mailer = console.mailer().map_err(|_| AlertFailure::MailOff)?;
    // Tests are counted apart: they keep no alert back.
    let counted = (email, event.percent.is_none());
    let taken = console.alerts_by_address.take(counted, Instant::now());
    taken.map_err(|_| AlertFailure::TooMany)?;
    let text = event.mail(Texts::of(&alert.language), &alert.made_by);
    mailer.send_now(email, &text).await.map_err(|reason| {
        log::warn!("mail (alert): {reason}");
        AlertFailure::MailRefused
    })
}

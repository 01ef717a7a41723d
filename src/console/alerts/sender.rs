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

/// Sends a message of an alert to where it goes now.
pub async fn send_alert(
    console: &Console,
    alert: &StoredAlert,
    event: &AlertEvent,
    body: &str,
) -> Result<(), AlertFailure> {
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
    let taken = console.alerts_by_address.take(email, Instant::now());
    taken.map_err(|_| AlertFailure::TooMany)?;
    let text = event.mail(Texts::of(&alert.language), &alert.made_by);
    mailer.send_now(email, &text).await.map_err(|reason| {
        log::warn!("mail (alert): {reason}");
        AlertFailure::MailRefused
    })
}

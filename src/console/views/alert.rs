//! Alerts, and what became of their messages.

use serde::Serialize;
use url::Url;

use super::Moment;
use crate::console::alert_failure::AlertFailure;
use crate::store::{AlertOutcome, AlertRecipient, AlertSubject, AlertTarget, StoredAlert};

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AlertView {
    pub id: String,
    pub account: String,
    /// The id of the key; null: it is about the cap of the account.
    pub key: Option<String>,
    pub key_name: Option<String>,
    /// Thresholds in percent of the cap, the lowest first.
    pub percents: Vec<u8>,
    /// The username of the person who gets mail.
    pub person: Option<String>,
    /// The address that gets mail.
    pub email: Option<String>,
    /// The URL of the webhook; only its host for who may not change the alert.
    pub webhook: Option<String>,
    pub made_by: String,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub created: Moment,
    /// What became of the last attempt.
    pub last: Option<AlertOutcomeView>,
    /// A message waits to be tried again.
    pub waiting: bool,
    /// One may change, test and delete it.
    pub may_change: bool,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AlertOutcomeView {
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub at: Moment,
    /// The threshold; null: it was a test message.
    pub percent: Option<u8>,
    pub sent: bool,
    /// Why it was not sent: `no_public_address`, `unreachable`, `redirect`, `status_500`, `mail_off`, `mail_refused`,
    /// `no_recipient` or `too_many`.
    pub reason: Option<String>,
}

/// An alert, with the secret of its webhook that is shown this once.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AlertWithSecret {
    #[serde(flatten)]
    pub alert: AlertView,
    /// What the webhook's messages are signed with; null: nothing new is.
    pub secret: Option<String>,
}

/// What became of a test message.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AlertTestView {
    pub sent: bool,
    /// Why it was not sent, as in the `last` of an alert.
    pub reason: Option<String>,
}

/// Somebody who can be told by mail.
#[derive(Debug, Clone)]
pub struct AlertRecipientView {
    pub handle: String,
    pub display: String,
    /// One's own address; those of others are not shown.
    pub own_email: Option<String>,
}

impl AlertView {
    pub fn new(alert: StoredAlert, may_change: bool) -> AlertView {
        let (email, webhook) = match alert.target {
            AlertTarget::Person(_) => (None, None),
            AlertTarget::Email(email) => (Some(email), None),
            AlertTarget::Webhook(url) if may_change => (None, Some(url)),
            AlertTarget::Webhook(url) => (None, Some(url_host(&url))),
        };
        AlertView {
            id: alert.id,
            account: alert.account,
            key: match alert.subject {
                AlertSubject::Key(id) => Some(id),
                AlertSubject::Account(_) => None,
            },
            key_name: alert.key,
            percents: alert.percents,
            person: alert.handle,
            email,
            webhook,
            made_by: alert.made_by,
            created: Moment(alert.created),
            last: alert.last.map(AlertOutcomeView::from),
            waiting: alert.due.is_some(),
            may_change,
        }
    }

    /// The thresholds, as a form takes them.
    pub fn percents_text(&self) -> String {
        let percents = self.percents.iter().map(u8::to_string);
        percents.collect::<Vec<String>>().join(", ")
    }
}

impl From<AlertOutcome> for AlertOutcomeView {
    fn from(outcome: AlertOutcome) -> AlertOutcomeView {
        let sent = outcome.outcome == "sent";
        AlertOutcomeView {
            at: Moment(outcome.at),
            percent: outcome.percent,
            sent,
            reason: (!sent).then_some(outcome.outcome),
        }
    }
}

impl AlertTestView {
    pub fn new(failure: Option<AlertFailure>) -> AlertTestView {
        AlertTestView {
            sent: failure.is_none(),
            reason: failure.map(|failure| failure.to_string()),
        }
    }
}

impl AlertRecipientView {
    pub fn new(person: AlertRecipient, own: &str) -> AlertRecipientView {
        AlertRecipientView {
            own_email: (person.person == own).then_some(person.email),
            handle: person.handle,
            display: person.display,
        }
    }
}

/// The host of a webhook, which is all that a log says of it: its path may be a secret.
pub fn url_host(url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.unwrap_or_default().to_owned()
}

//! What is told: the body of a webhook, from which mail is written too.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::form_urlencoded::byte_serialize;
use uuid::Uuid;

use crate::console::mail::MailText;
use crate::console::state::Console;
use crate::console::texts::{Texts, fill, fill_all};
use crate::console::views::{Decimal, Moment};
use crate::runtime::period_end;
use crate::store::{AlertSubject, StoredAlert, WatchedAlert};

/// A threshold that was reached, or a test.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AlertEvent {
    /// `spending.threshold` or `test`.
    #[serde(rename = "type")]
    kind: String,
    /// The same whenever this message is tried again.
    pub id: String,
    created: String,
    alert: String,
    account: String,
    /// The name of the key; null: the cap of the account.
    key: Option<String>,
    /// The highest threshold that is reached; null: a test.
    pub percent: Option<u8>,
    spent: Option<Decimal>,
    spending_cap: Option<Decimal>,
    reset: Option<String>,
    resets_at: Option<String>,
    /// The page about the key or account.
    url: String,
}

impl AlertEvent {
    /// Tells of a threshold that is reached.
    pub fn of(console: &Console, alert: &WatchedAlert, percent: u8, now: Timestamp) -> AlertEvent {
        AlertEvent {
            kind: "spending.threshold".to_owned(),
            percent: Some(percent),
            spent: Some(Decimal(alert.spent)),
            spending_cap: Some(Decimal(alert.cap)),
            reset: Some(alert.reset.word().to_owned()),
            resets_at: period_end(alert.reset, now).map(to_the_second),
            account: alert.account.clone(),
            key: alert.key.clone(),
            url: console.url(&page_path(&alert.subject, &alert.account)),
            ..AlertEvent::empty(&alert.id, now)
        }
    }

    /// Shows where messages arrive, and what they look like.
    pub fn test(console: &Console, alert: &StoredAlert) -> AlertEvent {
        AlertEvent {
            kind: "test".to_owned(),
            account: alert.account.clone(),
            key: alert.key.clone(),
            url: console.url(&page_path(&alert.subject, &alert.account)),
            ..AlertEvent::empty(&alert.id, Timestamp::now())
        }
    }

    fn empty(alert: &str, now: Timestamp) -> AlertEvent {
        AlertEvent {
            kind: String::new(),
            id: format!("msg_{}", Uuid::now_v7().simple()),
            created: to_the_second(now),
            alert: alert.to_owned(),
            account: String::new(),
            key: None,
            percent: None,
            spent: None,
            spending_cap: None,
            reset: None,
            resets_at: None,
            url: String::new(),
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a struct of text and numbers serialises")
    }

    /// The same in words.
    pub fn mail(&self, texts: &'static Texts, made_by: &str) -> MailText {
        let words = &texts.alerts;
        let subject = match &self.key {
            Some(key) => fill(words.mail_key, key),
            None => fill(words.mail_account, &self.account),
        };
        let figures = self.percent.zip(self.spent.zip(self.spending_cap));
        let (title, lead) = match figures {
            None => (
                fill(words.mail_test_subject, &subject),
                fill(words.mail_test_lead, &subject),
            ),
            Some((percent, (spent, cap))) => {
                let title = fill_all(words.mail_subject, &[&subject, &percent]);
                let lead = fill_all(words.mail_lead, &[&subject, &percent]);
                let (spent, cap) = (texts.amount(spent.0), texts.amount(cap.0));
                let figures = fill_all(words.mail_figures, &[&spent, &cap]);
                (
                    title,
                    format!("{lead}\n\n{figures}{}", self.reset_text(texts)),
                )
            }
        };
        let end = fill(words.mail_end, made_by);
        MailText::alert(title, format!("{lead}\n\n{}\n\n{end}\n", self.url))
    }

    /// When the spending starts again at zero.
    fn reset_text(&self, texts: &'static Texts) -> String {
        let moment = self.resets_at.as_deref();
        let moment = moment.and_then(|text| text.parse::<Timestamp>().ok());
        match moment {
            Some(moment) => {
                let moment = texts.moment(Moment(moment.as_millisecond()));
                format!("\n{}", fill(texts.alerts.mail_resets, moment))
            }
            None => String::new(),
        }
    }
}

/// The page with the alerts of a key or an account.
fn page_path(subject: &AlertSubject, account: &str) -> String {
    match subject {
        AlertSubject::Key(id) => format!("/keys/{id}/alerts"),
        AlertSubject::Account(_) => {
            let account: String = byte_serialize(account.as_bytes()).collect();
            format!("/accounts/{account}/alerts")
        }
    }
}

fn to_the_second(moment: Timestamp) -> String {
    let whole = Timestamp::from_second(moment.as_second());
    whole.unwrap_or(moment).to_string()
}

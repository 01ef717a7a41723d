//! The messages of the console: short plain text with one link.

use std::borrow::Cow;

use lettre::Message;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, header};

use crate::console::texts::{Texts, fill, fill_all};

/// The text of one message.
pub struct MailText {
    /// What it is called in the log.
    pub kind: &'static str,
    subject: Cow<'static, str>,
    body: String,
}

impl MailText {
    /// The link to choose another password.
    pub fn reset(texts: &'static Texts, link: &str) -> MailText {
        let mail = &texts.mail;
        MailText::new("reset", mail.reset_subject, fill(mail.reset_body, link))
    }

    /// The link that proves an address.
    pub fn verify(texts: &'static Texts, link: &str) -> MailText {
        let mail = &texts.mail;
        MailText::new("verify", mail.verify_subject, fill(mail.verify_body, link))
    }

    /// The link to make an account.
    pub fn sign_up(texts: &'static Texts, link: &str) -> MailText {
        let mail = &texts.mail;
        MailText::new(
            "sign up",
            mail.sign_up_subject,
            fill(mail.sign_up_body, link),
        )
    }

    /// Tells the owner of an address that there is an account with it already.
    pub fn known(texts: &'static Texts, sign_in: &str) -> MailText {
        let mail = &texts.mail;
        MailText::new("known", mail.known_subject, fill(mail.known_body, sign_in))
    }

    /// The link of an invitation.
    pub fn invitation(texts: &'static Texts, made_by: &str, link: &str) -> MailText {
        let mail = &texts.mail;
        let body = fill_all(mail.invitation_body, &[&made_by, &link]);
        MailText::new("invitation", mail.invitation_subject, body)
    }

    /// The link of an invitation to a team.
    pub fn team_invitation(
        texts: &'static Texts,
        made_by: &str,
        team: &str,
        link: &str,
    ) -> MailText {
        let body = fill_all(texts.team.mail_body, &[&made_by, &team, &link]);
        MailText::new("team invitation", texts.team.mail_subject, body)
    }

    /// Says that the password was changed.
    pub fn password_changed(texts: &'static Texts, handle: &str) -> MailText {
        let mail = &texts.mail;
        let body = fill(mail.changed_body, handle);
        MailText::new("password changed", mail.changed_subject, body)
    }

    /// What an alert says; the names in it are those of people.
    pub fn alert(subject: String, body: String) -> MailText {
        MailText {
            kind: "alert",
            subject: subject.into(),
            body,
        }
    }

    const fn new(kind: &'static str, subject: &'static str, body: String) -> MailText {
        MailText {
            kind,
            subject: Cow::Borrowed(subject),
            body,
        }
    }

    pub(super) fn compose(&self, from: &Mailbox, to: &str) -> Result<Message, String> {
        let to = to.parse().map_err(|_| "the address cannot be used")?;
        let automatic = HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        );
        let message = Message::builder()
            .from(from.clone())
            .to(Mailbox::new(None, to))
            .subject(&*self.subject)
            .raw_header(automatic)
            .message_id(None)
            .header(header::MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN)
            .body(self.body.clone());
        message.map_err(|error| error.to_string())
    }
}

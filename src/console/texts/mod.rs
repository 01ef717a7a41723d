//! The texts of the console, complete in every language: a text that is missing does not compile.

mod accounts;
mod admin;
mod alerts;
mod catalog;
mod chinese;
mod dates;
mod english;
mod explorer;
mod fidelity;
mod fields;
mod home;
mod inspect;
mod numbers;
mod play;
mod teams;
mod usage;

pub use chinese::CHINESE;
pub use english::ENGLISH;
pub use fidelity::loss_in_chinese;
pub use fields::Texts;
pub use numbers::{count, short_amount};
pub use usage::UsageTexts;

use std::fmt;

use super::alert_failure::AlertFailure;
use super::refusal::{InputProblem, Refusal};
use super::views::Moment;
use crate::model::Money;

impl Texts {
    /// The texts for a language tag; English where it is not known.
    pub fn of(tag: &str) -> &'static Texts {
        match tag.starts_with("zh") {
            true => &CHINESE,
            false => &ENGLISH,
        }
    }

    /// A count, for people.
    pub fn count(&self, number: u64) -> String {
        numbers::count(number)
    }

    /// An amount with all its digits.
    pub fn amount(&self, money: Money) -> String {
        numbers::amount(money)
    }

    /// An amount for a glance.
    pub fn short_amount(&self, money: Money) -> String {
        numbers::short_amount(money)
    }

    /// A moment, to the minute.
    pub fn moment(&self, moment: Moment) -> String {
        self.dated(moment.day(), moment.clock(false))
    }

    /// A moment, to the second.
    pub fn exact_moment(&self, moment: Moment) -> String {
        self.dated(moment.day(), moment.clock(true))
    }

    fn dated(&self, day: String, clock: String) -> String {
        let day = self.date(&day);
        match self.tag {
            "en" => format!("{day}, {clock} UTC"),
            _ => format!("{day} {clock} UTC"),
        }
    }

    /// A day such as `2026-11-18`, as people write it.
    pub fn date(&self, day: &str) -> String {
        match self.tag {
            "en" => dates::english(day),
            _ => dates::chinese(day),
        }
    }

    /// A time, in seconds.
    pub fn seconds(&self, milliseconds: u64) -> String {
        let seconds = format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
        fill(self.usage.seconds, seconds)
    }

    /// A text with a value in the place of `{}`.
    pub fn filled(&self, text: &str, value: impl fmt::Display) -> String {
        fill(text, value)
    }

    pub fn role_word(&self, role: &str) -> &'static str {
        match role {
            "admin" => self.role_admin,
            "viewer" => self.role_viewer,
            _ => self.role_member,
        }
    }

    pub fn reset_word(&self, reset: &str) -> &'static str {
        match reset {
            "daily" => self.reset_daily,
            "monthly" => self.reset_monthly,
            _ => self.reset_none,
        }
    }

    /// A refusal in words.
    pub fn refusal(&self, refusal: &Refusal) -> String {
        let texts = &self.refusals;
        let text = match refusal {
            Refusal::SignInNeeded => texts.sign_in_needed,
            Refusal::WrongLogin => texts.wrong_login,
            Refusal::WrongCode => texts.wrong_code,
            Refusal::SecondFactorOn => texts.second_factor_on,
            Refusal::Forbidden => texts.forbidden,
            Refusal::ConfirmPassword => texts.confirm_password,
            Refusal::NotFound => texts.not_found,
            Refusal::SignUpClosed => texts.sign_up_closed,
            Refusal::IdentityFailed => texts.identity_failed,
            Refusal::IdentityTaken => texts.identity_taken,
            Refusal::AddressUnproven => texts.address_unproven,
            Refusal::AccountDisabled => texts.account_disabled,
            Refusal::LastIdentity => texts.last_identity,
            Refusal::MailOff => texts.mail_off,
            Refusal::InspectorOff => self.inspect.off,
            Refusal::PlayUnavailable => self.play.unavailable,
            Refusal::MailFirst => texts.mail_first,
            Refusal::LinkOver => texts.link_over,
            Refusal::HandleTaken => texts.handle_taken,
            Refusal::EmailTaken => texts.email_taken,
            Refusal::LabelTaken => texts.label_taken,
            Refusal::LastAdministrator => texts.last_administrator,
            Refusal::LastOwner => self.team.last_owner,
            Refusal::AlreadyMember => self.team.already_member,
            Refusal::TooManyInvitations(max) => return fill(self.team.too_many_invitations, max),
            Refusal::TooManyKeys(max) => return fill(texts.too_many_keys, max),
            Refusal::TooManyAlerts(max) => return fill(self.alerts.too_many, max),
            Refusal::TooManyAttempts(wait) => {
                return fill(texts.too_many_attempts, wait.as_secs() + 1);
            }
            Refusal::Unavailable => texts.unavailable,
            Refusal::Invalid(problem) => return self.input_problem(problem),
        };
        text.to_owned()
    }

    /// Why a message of an alert did not arrive, by the word that is stored.
    pub fn alert_failure(&self, word: &str) -> String {
        let texts = &self.alerts;
        let text = match AlertFailure::from_word(word) {
            Some(AlertFailure::NoPublicAddress) => texts.no_public_address,
            Some(AlertFailure::Redirect) => texts.redirect,
            Some(AlertFailure::Status(status)) => return fill(texts.status, status),
            Some(AlertFailure::MailOff) => texts.mail_is_off,
            Some(AlertFailure::MailRefused) => texts.mail_refused,
            Some(AlertFailure::NoRecipient) => texts.no_recipient,
            Some(AlertFailure::TooMany) => texts.too_many_mails,
            Some(AlertFailure::Unreachable) | None => texts.unreachable,
        };
        text.to_owned()
    }

    fn input_problem(&self, problem: &InputProblem) -> String {
        let texts = &self.refusals;
        let text = match problem {
            InputProblem::Handle => texts.handle,
            InputProblem::Display => texts.display,
            InputProblem::Email => texts.email,
            InputProblem::Domain => texts.domain,
            InputProblem::PasswordShort => texts.password_short,
            InputProblem::PasswordLong => texts.password_long,
            InputProblem::Label => texts.label,
            InputProblem::LabelFixed => texts.label_fixed,
            InputProblem::Cap => texts.cap,
            InputProblem::CapNeeded => texts.cap_needed,
            InputProblem::CapAboveMax(most) => return fill(texts.cap_above_max, most),
            InputProblem::Reset => texts.reset,
            InputProblem::ResetWithoutCap => texts.reset_without_cap,
            InputProblem::AccountWithoutOwner => self.account.without_owner,
            InputProblem::TeamNeeded => self.team.team_needed,
            InputProblem::TeamDisabled => self.team.team_disabled,
            InputProblem::TeamRole => self.team.role_wrong,
            InputProblem::PersonUnknown => self.team.person_unknown,
            InputProblem::Models => texts.models,
            InputProblem::Count(field) => {
                let name = match *field {
                    "requests_per_minute" => self.requests_per_minute,
                    "tokens_per_minute" => self.tokens_per_minute,
                    "max_output_tokens" => self.explorer.max_output,
                    _ => self.concurrency,
                };
                return fill(texts.count, name);
            }
            InputProblem::Expiry => texts.expiry,
            InputProblem::ExpiryPast => texts.expiry_past,
            InputProblem::ExpiryAboveMax(days) => return fill(texts.expiry_above_max, days),
            InputProblem::Overlap => texts.overlap,
            InputProblem::Role => texts.role,
            InputProblem::Day(field) => return fill(texts.day, field),
            InputProblem::DayRange(most) => return fill(texts.day_range, most),
            InputProblem::Cursor => texts.cursor,
            InputProblem::BodyKind => texts.body_kind,
            InputProblem::Format(field) => return fill(texts.format, field),
            InputProblem::Capability(reason) => return fill(texts.capability, reason),
            InputProblem::InputTooLarge(most) => return fill(texts.input_too_large, most),
            InputProblem::OutputTooLarge(most) => return fill(texts.output_too_large, most),
            InputProblem::SettingsTooLong(most) => return fill(texts.settings_too_long, most),
            InputProblem::Percents(most) => return fill(self.alerts.wrong_percents, most),
            InputProblem::AlertSubject => self.alerts.wrong_subject,
            InputProblem::AlertTarget => self.alerts.wrong_target,
            InputProblem::AlertPerson => self.alerts.wrong_person,
            InputProblem::Webhook => self.alerts.wrong_webhook,
            InputProblem::Message => self.play.message_needed,
            InputProblem::Body(reason) => return fill(texts.body, reason),
        };
        text.to_owned()
    }
}

/// In English, for the command line and the log.
impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&ENGLISH.refusal(self))
    }
}

impl std::error::Error for Refusal {}

/// Puts a value in the place of `{}`.
pub fn fill(text: &str, value: impl fmt::Display) -> String {
    fill_all(text, &[&value])
}

/// Puts values in the places of `{}`, in their order. A `{}` in a value is none of them.
pub fn fill_all(text: &str, values: &[&dyn fmt::Display]) -> String {
    let mut filled = String::new();
    let mut parts = text.splitn(values.len() + 1, "{}");
    filled.extend(parts.next());
    for (value, part) in values.iter().zip(parts) {
        filled.push_str(&format!("{value}{part}"));
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::fill_all;

    #[test]
    fn braces_in_a_value_are_not_filled() {
        let filled = fill_all("{} of {}.", &[&"key {}", &80]);
        assert_eq!(filled, "key {} of 80.");
        assert_eq!(fill_all("none", &[&1]), "none");
    }
}

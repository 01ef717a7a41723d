//! Why a message of an alert did not arrive.

use std::fmt;

/// A failed attempt, as coarse as people may know it; the log has the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertFailure {
    /// Its host is unknown, or on a private network: the answer does not tell which.
    NoPublicAddress,
    Unreachable,
    Redirect,
    /// It has answered with this status.
    Status(u16),
    MailOff,
    /// The mail server has not taken it.
    MailRefused,
    /// The person has left the account, is disabled, or has no proven address; or who set the alert no longer may.
    NoRecipient,
    /// The address got many alerts just now.
    TooMany,
}

impl AlertFailure {
    /// Reads what `Display` writes.
    pub fn from_word(word: &str) -> Option<AlertFailure> {
        Some(match word {
            "no_public_address" => AlertFailure::NoPublicAddress,
            "unreachable" => AlertFailure::Unreachable,
            "redirect" => AlertFailure::Redirect,
            "mail_off" => AlertFailure::MailOff,
            "mail_refused" => AlertFailure::MailRefused,
            "no_recipient" => AlertFailure::NoRecipient,
            "too_many" => AlertFailure::TooMany,
            _ => AlertFailure::Status(word.strip_prefix("status_")?.parse().ok()?),
        })
    }
}

/// The word that is stored, and that programs read.
impl fmt::Display for AlertFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            AlertFailure::NoPublicAddress => "no_public_address",
            AlertFailure::Unreachable => "unreachable",
            AlertFailure::Redirect => "redirect",
            AlertFailure::Status(status) => return write!(out, "status_{status}"),
            AlertFailure::MailOff => "mail_off",
            AlertFailure::MailRefused => "mail_refused",
            AlertFailure::NoRecipient => "no_recipient",
            AlertFailure::TooMany => "too_many",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read_as_they_are_written() {
        for failure in [
            AlertFailure::NoPublicAddress,
            AlertFailure::Unreachable,
            AlertFailure::Redirect,
            AlertFailure::Status(503),
            AlertFailure::MailOff,
            AlertFailure::MailRefused,
            AlertFailure::NoRecipient,
            AlertFailure::TooMany,
        ] {
            assert_eq!(AlertFailure::from_word(&failure.to_string()), Some(failure));
        }
        assert_eq!(AlertFailure::from_word("sent"), None);
    }
}

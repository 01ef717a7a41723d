//! Reads what people type: usernames, e-mail addresses, names of keys.

use crate::config::mail_address;
use crate::console::refusal::{InputProblem, Refusal};

const HANDLE_LENGTH: std::ops::RangeInclusive<usize> = 2..=32;
const MAX_DISPLAY: usize = 80;
const MAX_LABEL: usize = 64;

/// A username in lower case. It is part of the names of keys, and never changes.
pub fn handle(text: &str) -> Result<String, Refusal> {
    let handle = text.trim().to_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = HANDLE_LENGTH.contains(&handle.len())
        && handle.bytes().all(is_plain)
        && !handle.starts_with('-')
        && !handle.ends_with('-');
    match fits {
        true => Ok(handle),
        false => Err(InputProblem::Handle.into()),
    }
}

/// The name that others see; without one it is the username.
pub fn display(text: &str, handle: &str) -> Result<String, Refusal> {
    let text = text.trim();
    match text {
        "" => Ok(handle.to_owned()),
        _ if text.chars().count() > MAX_DISPLAY || text.chars().any(char::is_control) => {
            Err(InputProblem::Display.into())
        }
        _ => Ok(text.to_owned()),
    }
}

/// An e-mail address in lower case; empty: none.
pub fn email(text: &str) -> Result<Option<String>, Refusal> {
    let email = text.trim();
    if email.is_empty() {
        return Ok(None);
    }
    match mail_address(email) {
        Ok(email) => Ok(Some(email)),
        Err(_) => Err(InputProblem::Email.into()),
    }
}

/// The name of a key within its account.
pub fn label(text: &str) -> Result<String, Refusal> {
    let text = text.trim();
    let fits = (1..=MAX_LABEL).contains(&text.chars().count())
        && !text.contains('/')
        && !text.chars().any(char::is_control);
    match fits {
        true => Ok(text.to_owned()),
        false => Err(InputProblem::Label.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usernames_are_plain_and_in_lower_case() {
        assert_eq!(handle(" Ada-1 "), Ok("ada-1".to_owned()));
        for wrong in [
            "",
            "a",
            "-ada",
            "ada-",
            "ada lovelace",
            "ada/x",
            "ada@x.org",
            "äda",
        ] {
            assert_eq!(handle(wrong), Err(InputProblem::Handle.into()), "{wrong}");
        }
        assert!(handle(&"a".repeat(33)).is_err());
    }

    #[test]
    fn e_mail_addresses_have_one_at_and_no_room_for_headers() {
        assert_eq!(
            email(" Ada@Example.org"),
            Ok(Some("ada@example.org".to_owned()))
        );
        assert_eq!(email("  "), Ok(None));
        for wrong in [
            "ada",
            "@x.org",
            "ada@",
            "ada@x",
            "a@b@x.org",
            "a@x.org\r\nbcc: b@x.org",
            "A <a@x.org>",
        ] {
            assert_eq!(email(wrong), Err(InputProblem::Email.into()), "{wrong}");
        }
    }

    #[test]
    fn labels_have_no_slash_and_no_control_characters() {
        assert_eq!(label(" laptop "), Ok("laptop".to_owned()));
        for wrong in ["", " ", "a/b", "a\nb", "\u{7f}"] {
            assert_eq!(label(wrong), Err(InputProblem::Label.into()), "{wrong:?}");
        }
    }
}

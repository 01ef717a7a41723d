//! Parsers of e-mail addresses and their domains.

use super::Parsed;

const MAX_MAIL_ADDRESS: usize = 254;

/// A domain of e-mail addresses, in lower case.
pub fn domain(text: &str) -> Parsed<String> {
    let domain = text.to_lowercase();
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '.');
    let fits = domain.contains('.')
        && domain.chars().all(is_plain)
        && !domain.starts_with(['.', '-'])
        && !domain.ends_with(['.', '-'])
        && !domain.contains("..");
    fits.then_some(domain)
        .ok_or_else(|| "a domain such as example.com".to_owned())
}

/// An e-mail address, in lower case.
pub fn mail_address(text: &str) -> Parsed<String> {
    let address = text.trim().to_lowercase();
    let parts = address.split_once('@');
    let is_plain = |letter: char| {
        !letter.is_control()
            && !letter.is_whitespace()
            && !matches!(letter, '<' | '>' | ',' | ';' | '"' | '@')
    };
    let fits = address.len() <= MAX_MAIL_ADDRESS
        && parts.is_some_and(|(local, host)| {
            !local.is_empty() && local.chars().all(is_plain) && domain(host).is_ok()
        });
    match fits {
        true => Ok(address),
        false => Err("an e-mail address such as name@example.com".to_owned()),
    }
}

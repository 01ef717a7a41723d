//! Parsers of scalars: durations, sizes, addresses, URLs, headers, money, globs.
//!
//! Every function returns the value, or a description of what is allowed (`a duration such as 5s`), which the
//! message puts behind "must be".

mod mail;
mod urls;

pub use mail::{domain, mail_address};
pub use urls::{base_url, document_url, limits_store, origin, public_url, store};

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytesize::ByteSize;
use http::{HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

use super::settings::{Amount, IpNetwork};
use crate::model::{MAX_DIGITS, Money};

/// The value, or the description of what is allowed.
pub type Parsed<T> = Result<T, String>;

/// Headers that the gateway sets itself.
const FRAMING_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers of clients that carry credentials.
const CREDENTIAL_HEADERS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "x-vendor-api-key",
    "x-goog-api-key",
    "api-key",
];

/// A limit that keeps sums of weights from overflowing.
const MAX_WEIGHT: u32 = 1_000_000;

const SMALLEST_JOURNAL: u64 = 1 << 20;

const MAX_ATTEMPTS: usize = 20;

/// The longest duration; sums of such durations cannot overflow.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

pub fn duration_or_zero(text: &str) -> Parsed<Duration> {
    humantime::parse_duration(text)
        .ok()
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| "a duration of at most a day, such as 5s, 250ms or 2m".to_owned())
}

pub fn duration(text: &str) -> Parsed<Duration> {
    match duration_or_zero(text)? {
        Duration::ZERO => Err("a duration longer than zero, such as 5s".to_owned()),
        duration => Ok(duration),
    }
}

/// A duration of any length that people think in.
pub fn long_duration(text: &str) -> Parsed<Duration> {
    let fits = |duration: &Duration| (1..=3650 * 24 * 3600).contains(&duration.as_secs());
    humantime::parse_duration(text)
        .ok()
        .filter(fits)
        .ok_or_else(|| "a duration from 1s to 3650d, such as 8h or 90d".to_owned())
}

/// How often a list is read: an upstream is not asked all the time.
pub fn discovery_interval(text: &str) -> Parsed<Duration> {
    let at_least = |duration: &Duration| *duration >= Duration::from_secs(1);
    duration(text)
        .ok()
        .filter(at_least)
        .ok_or_else(|| "a duration from 1s to a day, such as 10m".to_owned())
}

/// A switch, in every way that people write one.
pub fn switch(text: &str) -> Parsed<bool> {
    let is_any = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match text {
        _ if is_any(["true", "on", "yes"]) => Ok(true),
        _ if is_any(["false", "off", "no"]) => Ok(false),
        _ => Err("true or false".to_owned()),
    }
}

/// A timeout, or `off` for none.
pub fn duration_or_off(text: &str) -> Parsed<Option<Duration>> {
    match switch(text) {
        Ok(false) => Ok(None),
        _ => duration(text)
            .map(Some)
            .map_err(|expected| format!("{expected}, or off")),
    }
}

pub fn size(text: &str) -> Parsed<usize> {
    let bytes = text.parse::<ByteSize>().ok().map(|size| size.as_u64());
    bytes
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size above zero such as 64MiB".to_owned())
}

/// The size limit of the journal, which must hold at least some records.
pub fn journal_limit(text: &str) -> Parsed<u64> {
    let bytes = text.parse::<ByteSize>().ok().map(|size| size.as_u64());
    bytes
        .filter(|bytes| *bytes >= SMALLEST_JOURNAL)
        .ok_or_else(|| "a size of at least 1MiB, such as 1GiB".to_owned())
}

pub fn count(text: &str) -> Parsed<u64> {
    digits(text)
        .filter(|count| *count > 0)
        .ok_or_else(|| "a whole number from 1 on".to_owned())
}

/// A part of a whole.
pub fn ratio(text: &str) -> Parsed<f64> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let ratio = text.parse().ok().filter(|_| is_plain);
    ratio
        .filter(|ratio| (0.0..=1.0).contains(ratio))
        .ok_or_else(|| "a number from 0 to 1, such as 0.01".to_owned())
}

pub fn weight(text: &str) -> Parsed<u32> {
    digits(text)
        .and_then(|weight| u32::try_from(weight).ok())
        .filter(|weight| (1..=MAX_WEIGHT).contains(weight))
        .ok_or_else(|| format!("a whole number from 1 to {MAX_WEIGHT}"))
}

/// A priority; the lowest is tried first.
pub fn priority(text: &str) -> Parsed<u32> {
    digits(text)
        .and_then(|priority| u32::try_from(priority).ok())
        .ok_or_else(|| "a whole number from 0 on".to_owned())
}

/// A number of attempts; more than the maximum only keep a client waiting.
pub fn attempts(text: &str) -> Parsed<usize> {
    digits(text)
        .and_then(|attempts| usize::try_from(attempts).ok())
        .filter(|attempts| (1..=MAX_ATTEMPTS).contains(attempts))
        .ok_or_else(|| format!("a whole number from 1 to {MAX_ATTEMPTS}"))
}

pub fn failures(text: &str) -> Parsed<u32> {
    digits(text)
        .and_then(|failures| u32::try_from(failures).ok())
        .filter(|failures| *failures > 0)
        .ok_or_else(|| "a whole number from 1 on".to_owned())
}

pub fn percent(text: &str) -> Parsed<u32> {
    text.strip_suffix('%')
        .and_then(digits)
        .and_then(|percent| u32::try_from(percent).ok())
        .filter(|percent| (1..=100).contains(percent))
        .ok_or_else(|| "a share from 1% to 100%".to_owned())
}

/// A path behind a base URL.
pub fn path(text: &str) -> Parsed<String> {
    let plain = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    plain
        .then(|| text.to_owned())
        .ok_or_else(|| "a path such as /health, behind the base URL".to_owned())
}

/// A path behind a base URL, with placeholders.
pub fn path_template(text: &str) -> Parsed<String> {
    let plain = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    (plain && !text.contains(['?', '#']))
        .then(|| text.to_owned())
        .ok_or_else(|| "a path such as /models/{model}:generate, without ? (see query)".to_owned())
}

/// The value of a placeholder, which may also be part of a host.
pub fn template_value(text: &str) -> Parsed<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (!text.is_empty() && text.bytes().all(is_plain))
        .then(|| text.to_owned())
        .ok_or_else(|| "letters, digits and -, _, . or :".to_owned())
}

pub fn queue(text: &str) -> Parsed<u64> {
    digits(text).ok_or_else(|| "a whole number from 0 on".to_owned())
}

fn digits(text: &str) -> Option<u64> {
    let only_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| text.parse().ok()).flatten()
}

/// An amount of money, exact.
pub fn amount(text: &str) -> Parsed<Amount> {
    let amount = Money::parse(text).map(|money| Amount {
        written: text.to_owned(),
        money,
    });
    amount.ok_or_else(|| {
        let digits = format!("at most {MAX_DIGITS} digits on either side of the point");
        format!("an amount from 0 on, such as 1.25, with {digits}")
    })
}

/// A name for people: of a key, a feature, a currency.
pub fn label(text: &str) -> Parsed<String> {
    let readable = !text.trim().is_empty() && !text.chars().any(char::is_control);
    readable
        .then(|| text.to_owned())
        .ok_or_else(|| "some text on one line".to_owned())
}

/// The name of a key or of an account. Those with a `/` belong to people, and are made in the console.
pub fn key_name(text: &str) -> Parsed<String> {
    match label(text) {
        Ok(_) if text.contains('/') => Err("some text on one line without a /".to_owned()),
        parsed => parsed,
    }
}

/// A name that is also used in paths and headers: of an upstream, a model.
pub fn name(text: &str) -> Parsed<String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    plain
        .then(|| text.to_owned())
        .ok_or_else(|| "letters, digits and signs without spaces".to_owned())
}

/// The id of a model; a `*` in it stands for any text.
pub fn model_id(text: &str) -> Parsed<String> {
    match name(text) {
        Ok(_) if text.matches('*').count() > 1 => {
            Err("a name with at most one *, such as \"gpt-*\"".to_owned())
        }
        parsed => parsed,
    }
}

/// A further name of a model.
pub fn alias(text: &str) -> Parsed<String> {
    match name(text) {
        Ok(_) if text.contains('*') => Err("a name without a *".to_owned()),
        parsed => parsed,
    }
}

/// An upstream's own name for a model.
pub fn upstream_model(text: &str) -> Parsed<String> {
    match label(text) {
        Ok(_) if text.matches('*').count() > 1 => Err(
            "a name with at most one *, which stands for what that of the id matched".to_owned(),
        ),
        parsed => parsed,
    }
}

/// A name that begins the names of fields, such as `google` in `googleSearch`.
pub fn brand(text: &str) -> Parsed<String> {
    let word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (word && text.starts_with(|first: char| first.is_ascii_lowercase()))
        .then(|| text.to_owned())
        .ok_or_else(|| "a word of letters and digits that begins in lower case".to_owned())
}

/// The longest glob, in bytes: to match a name takes as many steps as the product of both lengths.
const MAX_GLOB: usize = 200;

pub fn glob(text: &str) -> Parsed<String> {
    if text.len() > MAX_GLOB {
        return Err(format!("a glob of at most {MAX_GLOB} bytes"));
    }
    match globset::Glob::new(text) {
        Ok(_) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err("a glob such as \"acme-*\"".to_owned()),
    }
}

pub fn address(text: &str) -> Parsed<SocketAddr> {
    text.parse()
        .map_err(|_| "an IP address and a port such as 127.0.0.1:8080 or \"[::1]:8080\"".to_owned())
}

/// An address, or a range of them.
pub fn ip_network(text: &str) -> Parsed<IpNetwork> {
    let expected = || "an address or a range such as 10.0.0.0/8".to_owned();
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(digits(bits).ok_or_else(expected)?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| expected())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(longest), |bits| u32::try_from(bits).ok());
    match bits.filter(|bits| *bits <= longest) {
        Some(bits) => Ok(IpNetwork { address, bits }),
        None => Err(expected()),
    }
}

/// The SHA-256 of a key that clients can send: anything else would never match.
pub fn secret(text: &str) -> Parsed<[u8; 32]> {
    let sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    sendable
        .then(|| Sha256::digest(text.as_bytes()).into())
        .ok_or_else(|| {
            "printable ASCII without spaces or line ends, and not empty (it is not shown here)"
                .to_owned()
        })
}

pub fn sha256(text: &str) -> Parsed<[u8; 32]> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = [0; 32];
    let pairs = text.as_bytes().chunks_exact(2);
    let fits = text.len() == 64
        && bytes.iter_mut().zip(pairs).all(|(byte, pair)| {
            let value = digit(pair[0]).zip(digit(pair[1]));
            let value = value.and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
            *byte = value.unwrap_or_default();
            value.is_some()
        });
    fits.then_some(bytes)
        .ok_or_else(|| "the SHA-256 of the secret, as 64 hex digits".to_owned())
}

pub fn header_name(text: &str) -> Parsed<String> {
    let name = HeaderName::from_bytes(text.as_bytes())
        .map_err(|_| "a header name such as x-team".to_owned())?;
    if FRAMING_HEADERS.contains(&name.as_str()) {
        let headers = FRAMING_HEADERS.join(", ");
        return Err(format!(
            "a header that the gateway does not write itself ({headers})"
        ));
    }
    Ok(name.as_str().to_owned())
}

/// The name of a header that may decide where a request goes. Those with credentials may not: the config would have to
/// hold them.
pub fn condition_header(text: &str) -> Parsed<String> {
    let name = header_name(text)?;
    match CREDENTIAL_HEADERS.contains(&name.as_str()) {
        true => Err(format!(
            "a header without credentials (not {})",
            either(&CREDENTIAL_HEADERS)
        )),
        false => Ok(name),
    }
}

pub fn header_value(text: &str) -> Parsed<String> {
    // Spaces at the ends would be trimmed on the wire, and usually come from a pasted key.
    let trimmed = !text.is_empty() && text.trim() == text;
    (trimmed && HeaderValue::from_str(text).is_ok())
        .then(|| text.to_owned())
        .ok_or_else(|| {
            "text on one line, not empty, without spaces at its ends (it is not shown here)"
                .to_owned()
        })
}

/// One of several words, each with its value.
pub fn one_of<T: Copy>(choices: &[(&str, T)]) -> impl Fn(&str) -> Parsed<T> {
    move |text| {
        let found = choices.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            either(&words)
        })
    }
}

/// `a, b or c`.
pub fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

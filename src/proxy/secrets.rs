//! What only the gateway and the upstream may know, kept out of what an upstream's errors tell; and
//! the credentials among it out of the log.

use std::borrow::Cow;

use super::whereabouts::Whereabouts;
use crate::model::ApiError;
use crate::runtime::Upstream;

/// A shorter value would be found in texts that do not mean it, and is no secret.
const SHORTEST: usize = 8;

const BEARER: &[u8] = b"Bearer ";
const HIDDEN: &[u8] = b"***";

/// An error as it may be told and logged.
pub(super) fn hide_in_fault(upstream: &Upstream, api_error: &mut ApiError) {
    let trouble = &mut **api_error;
    let texts = [&mut trouble.param, &mut trouble.code];
    let texts = texts.into_iter().flatten().chain([&mut trouble.message]);
    for text in texts {
        if let Some(hidden) = hide(upstream, text.as_bytes()) {
            *text = String::from_utf8_lossy(&hidden).into_owned();
        }
    }
}

/// Words for the log, whose readers know where the upstream is.
pub(super) fn hide_in_text<'a>(upstream: &Upstream, text: &'a str) -> Cow<'a, str> {
    let bytes = text.as_bytes();
    let secrets = credentials(upstream);
    match without(bytes, |at| credential_at(&secrets, &bytes[at..])) {
        Some(hidden) => String::from_utf8_lossy(&hidden).into_owned().into(),
        None => text.into(),
    }
}

/// The bytes without credentials and addresses; nothing where they hold none of it.
pub(super) fn hide(upstream: &Upstream, bytes: &[u8]) -> Option<Vec<u8>> {
    let (secrets, whereabouts) = (credentials(upstream), Whereabouts::of(&upstream.base));
    without(bytes, |at| {
        let credential = credential_at(&secrets, &bytes[at..]);
        credential.or_else(|| whereabouts.length_at(bytes, at))
    })
}

fn credentials(upstream: &Upstream) -> Vec<&[u8]> {
    let values = upstream.headers.iter().map(|(_, value)| value.as_bytes());
    let values = values.map(|value| value.strip_prefix(BEARER).unwrap_or(value));
    values.filter(|value| value.len() >= SHORTEST).collect()
}

/// The longest, since one may begin with another.
fn credential_at(secrets: &[&[u8]], text: &[u8]) -> Option<usize> {
    let found = secrets.iter().filter_map(|secret| length_of(secret, text));
    found.max()
}

/// `found`: how many bytes are to go at a place, if any.
fn without(bytes: &[u8], found: impl Fn(usize) -> Option<usize>) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        let Some(length) = found(at) else {
            at += 1;
            continue;
        };
        kept.extend_from_slice(&bytes[from..at]);
        kept.extend_from_slice(HIDDEN);
        at += length;
        from = at;
    }
    (from > 0).then(|| [&kept, &bytes[from..]].concat())
}

/// How many bytes the secret takes where the text begins with it, be it as it is or as a part of
/// a JSON string, whose writers differ in what they escape.
fn length_of(secret: &[u8], text: &[u8]) -> Option<usize> {
    let mut at = 0;
    for byte in secret {
        at += character(*byte, &text[at..])?;
    }
    Some(at)
}

fn character(byte: u8, text: &[u8]) -> Option<usize> {
    if text.first() == Some(&byte) && byte != b'\\' {
        return Some(1);
    }
    if text.first() != Some(&b'\\') {
        return None;
    }
    let escaped = || {
        let digits = std::str::from_utf8(text.get(2..6)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    match text.get(1) {
        Some(b'u') if escaped() == Some(byte.into()) => Some(6),
        Some(next) if *next == byte && matches!(byte, b'"' | b'\\' | b'/') => Some(2),
        _ => (byte == b'\\').then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BaseUrl;

    fn told(text: &str, secrets: &[&str]) -> Option<String> {
        let secrets: Vec<_> = secrets.iter().map(|secret| secret.as_bytes()).collect();
        let kept = without(text.as_bytes(), |at| {
            credential_at(&secrets, &text.as_bytes()[at..])
        })?;
        Some(String::from_utf8(kept).expect("text"))
    }

    #[test]
    fn a_secret_is_found_wherever_and_however_it_is_written() {
        let secrets = ["sk-a/b=c\"d\\e", "sk-a/b=c\"d\\e-and-more"];
        for (text, expected) in [
            (r#"key sk-a/b=c"d\e."#, "key ***."),
            (r#""key sk-a/b=c\"d\\e.""#, r#""key ***.""#),
            (r#"sk-a\/b\u003dc\u0022d\u005Ce"#, "***"),
            (r#"sk-sk-a/b=c"d\esk-a/b=c"d\e"#, "sk-******"),
            (r#"sk-a/b=c"d\e-and-more and more"#, "*** and more"),
        ] {
            assert_eq!(told(text, &secrets).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "sk-a",
            "sk-a/b",
            r"sk-a\",
            r"sk-a\u00",
            "SK-A/B=C",
            "***",
        ] {
            assert_eq!(told(text, &secrets), None, "{text}");
        }
    }

    #[test]
    fn an_upstreams_address_is_found_and_no_other_word() {
        let told = |(authority, port): (&str, u16), text: &str| {
            let base = BaseUrl {
                tls: true,
                host: String::new(),
                port,
                authority: authority.to_owned(),
                prefix: String::new(),
            };
            let (whereabouts, bytes) = (Whereabouts::of(&base), text.as_bytes());
            let kept = without(bytes, |at| whereabouts.length_at(bytes, at))?;
            Some(String::from_utf8(kept).expect("text"))
        };
        for (base, text, expected) in [
            (
                ("up:8080", 8080),
                "at http://up:8080/v1.",
                "at http://***/v1.",
            ),
            (
                ("up:8080", 8080),
                r"up:8080 and http:\/\/up\/v1",
                r"*** and http:\/\/***\/v1",
            ),
            (("up", 443), "GET //up, not up", "GET //***, not up"),
            (("up", 443), "up:443", "***"),
            (
                ("api.a.com", 443),
                "No route to API.a.com.",
                "No route to ***.",
            ),
            (
                ("api.a.com", 443),
                r"x\napi.a.com\u0022api.a.com",
                r"x\n***\u0022***",
            ),
            (
                ("api.a.com", 443),
                "api.a.com:443, api.a.com:8",
                "***, ***:8",
            ),
            (("[::1]:81", 81), "http://[::1]:81/", "http://***/"),
            (("10.0.0.1:81", 81), "10.0.0.1:81 10.0.0.1", "*** ***"),
        ] {
            assert_eq!(told(base, text).as_deref(), Some(expected), "{text}");
        }
        for (base, text) in [
            (
                ("up:8080", 8080),
                "cut up: 8080 tokens, up:80801, startup:8080, //upper",
            ),
            (
                ("api.a.com", 443),
                "my-api.a.com api.a.com.br api.a.community a.com",
            ),
            (("10.0.0.1:81", 81), "110.0.0.1:81 10.0.0.11"),
        ] {
            assert_eq!(told(base, text), None, "{text}");
        }
    }
}

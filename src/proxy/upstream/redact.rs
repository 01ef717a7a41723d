//! Redacts credentials and addresses of upstreams in what clients are told, and credentials in the log.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use secrecy::ExposeSecret as _;

use crate::config::BaseUrl;
use crate::model::ApiError;
use crate::runtime::Upstream;

/// A shorter value would match in texts that do not mean it, and is no secret.
const SHORTEST: usize = 8;

const BEARER: &[u8] = b"Bearer ";
const REDACTED: &[u8] = b"***";

/// The digits of a signature of AWS.
const SIGNATURE_LENGTH: usize = 64;

/// Redacts every text of an error.
pub(in crate::proxy) fn redact_error(upstream: &Upstream, api_error: &mut ApiError) {
    let details = &mut **api_error;
    let texts = [&mut details.param, &mut details.code];
    let texts = texts.into_iter().flatten().chain([&mut details.message]);
    for text in texts {
        if let Some(redacted) = redact(upstream, text.as_bytes()) {
            *text = String::from_utf8_lossy(&redacted).into_owned();
        }
    }
}

/// Redacts credentials in a text for the log, whose readers know where the upstream is.
pub(in crate::proxy) fn redact_log<'a>(upstream: &Upstream, text: &'a str) -> Cow<'a, str> {
    let bytes = text.as_bytes();
    let secrets = with_base64(credentials(upstream));
    let found = |at: usize| {
        let credential = longest_credential(&secrets, &bytes[at..]);
        credential.or_else(|| signature_at(bytes, at))
    };
    match replace_found(bytes, found) {
        Some(redacted) => String::from_utf8_lossy(&redacted).into_owned().into(),
        None => text.into(),
    }
}

/// Redacts credentials and addresses; `None`: the bytes hold none of them.
pub(in crate::proxy) fn redact(upstream: &Upstream, bytes: &[u8]) -> Option<Vec<u8>> {
    let secrets = with_base64(credentials(upstream));
    let address = UpstreamAddress::new(&upstream.base);
    replace_found(bytes, |at| {
        let credential = longest_credential(&secrets, &bytes[at..]);
        let credential = credential.or_else(|| signature_at(bytes, at));
        credential.or_else(|| address.length_at(bytes, at))
    })
}

/// What is redacted in what the owner of an inspected key is shown.
pub(in crate::proxy) struct CaptureSecrets<'u> {
    secrets: Vec<Vec<u8>>,
    /// Whether a byte can be the first one of a secret, however that is written.
    begins: [bool; 256],
    address: Option<UpstreamAddress<'u>>,
}

impl<'u> CaptureSecrets<'u> {
    /// The credentials of an upstream, and those that the client has sent.
    pub(in crate::proxy) fn new(
        upstream: Option<&'u Upstream>,
        of_client: &[Vec<u8>],
    ) -> CaptureSecrets<'u> {
        let mut secrets = upstream.map(credentials).unwrap_or_default();
        let of_client = of_client.iter().filter(|secret| secret.len() >= SHORTEST);
        secrets.extend(of_client.cloned());
        let secrets = with_base64(secrets);
        let mut begins = [false; 256];
        let firsts = secrets.iter().filter_map(|secret| secret.first().copied());
        for first in firsts.chain([b'%', b'\\']) {
            begins[usize::from(first)] = true;
        }
        CaptureSecrets {
            secrets,
            begins,
            address: upstream.map(|upstream| UpstreamAddress::new(&upstream.base)),
        }
    }

    /// The same for what the client itself has sent and got: the address is in it only by chance.
    pub(in crate::proxy) fn of_client(self) -> CaptureSecrets<'u> {
        CaptureSecrets {
            address: None,
            ..self
        }
    }

    /// Redacts credentials; `None`: the bytes hold none.
    pub(in crate::proxy) fn redact(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        replace_found(bytes, |at| self.credential_at(bytes, at))
    }

    /// Redacts the upstream's address as well.
    pub(in crate::proxy) fn redact_with_address(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        replace_found(bytes, |at| {
            let credential = self.credential_at(bytes, at);
            credential.or_else(|| self.address.as_ref()?.length_at(bytes, at))
        })
    }

    fn credential_at(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let credential = match self.begins[usize::from(bytes[at])] {
            true => longest_credential(&self.secrets, &bytes[at..]),
            false => None,
        };
        credential.or_else(|| signature_at(bytes, at))
    }
}

fn credentials(upstream: &Upstream) -> Vec<Vec<u8>> {
    let values = upstream.headers.iter().map(|(_, value)| value.as_bytes());
    let values = values.map(|value| value.strip_prefix(BEARER).unwrap_or(value));
    let mut all: Vec<Vec<u8>> = values.map(<[u8]>::to_vec).collect();
    let in_query = upstream.query_secret.iter();
    all.extend(in_query.map(|secret| secret.expose_secret().as_bytes().to_vec()));
    for fetched in upstream.credential.iter().flat_map(|it| it.recent()) {
        let secrets = fetched.value.secrets().into_iter();
        all.extend(secrets.map(<[u8]>::to_vec));
    }
    all.retain(|value| value.len() >= SHORTEST);
    all
}

/// The credentials, and the parts of a base64 text that they are, wherever they begin in what was
/// encoded: that may be `user:secret`, or a whole header.
fn with_base64(secrets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for secret in secrets {
        for before in 0..3 {
            let bytes = [&[0; 2][..before], &secret].concat();
            // Digits that other bytes have a part in are left out.
            let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
            for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let encoded = alphabet.encode(&bytes).into_bytes();
                all.extend(encoded.get(first..end).map(<[u8]>::to_vec));
            }
        }
        all.push(secret);
    }
    all
}

/// How long the longest credential is that begins here: one may begin with another.
fn longest_credential(secrets: &[Vec<u8>], text: &[u8]) -> Option<usize> {
    let found = secrets.iter().filter_map(|secret| length_of(secret, text));
    found.max()
}

/// How long the signature of a request to AWS is that begins here: it is made anew for each request, and stands for the
/// credentials until it is a few minutes old.
fn signature_at(text: &[u8], at: usize) -> Option<usize> {
    let (before, rest) = text.split_at(at);
    let is_signature = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let digits = rest.get(..SIGNATURE_LENGTH)?;
    (before.ends_with(b"Signature=") && is_signature(digits)).then_some(SIGNATURE_LENGTH)
}

/// Replaces every match. `found` says how many bytes match at a position, if any.
fn replace_found(bytes: &[u8], found: impl Fn(usize) -> Option<usize>) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        let Some(length) = found(at) else {
            at += 1;
            continue;
        };
        kept.extend_from_slice(&bytes[from..at]);
        kept.extend_from_slice(REDACTED);
        at += length;
        from = at;
    }
    (from > 0).then(|| [&kept, &bytes[from..]].concat())
}

/// How many bytes the secret takes where the text begins with it, be it as it is, percent-encoded or
/// as a part of a JSON string, whose writers differ in what they escape.
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
    if let [b'%', high, low, ..] = text {
        let digits = [*high, *low];
        let digits = std::str::from_utf8(&digits).unwrap_or_default();
        return (u8::from_str_radix(digits, 16) == Ok(byte)).then_some(3);
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

/// The host of an upstream, which is for the gateway's operator alone.
struct UpstreamAddress<'u> {
    /// The host as it stands in a URL.
    name: &'u str,
    /// With the colon before it.
    port: String,
    /// Whether the name can only be a host's; others may be any word, and count only in a URL.
    is_qualified: bool,
}

impl<'u> UpstreamAddress<'u> {
    fn new(base: &'u BaseUrl) -> UpstreamAddress<'u> {
        let port = format!(":{}", base.port);
        let authority = base.authority.as_str();
        let name = authority.strip_suffix(&port).unwrap_or(authority);
        UpstreamAddress {
            name,
            port,
            is_qualified: name.contains(['.', ':']),
        }
    }

    /// How many bytes the address takes at this position of a text, which may be written as JSON.
    fn length_at(&self, text: &[u8], at: usize) -> Option<usize> {
        let (before, rest) = text.split_at(at);
        let (name, after) = rest.split_at_checked(self.name.len())?;
        if !name.eq_ignore_ascii_case(self.name.as_bytes()) || continues_name(before) {
            return None;
        }
        let with_port = after.strip_prefix(self.port.as_bytes());
        let with_port = with_port.filter(|after| !after.first().is_some_and(u8::is_ascii_digit));
        if with_port.is_some() {
            return Some(self.name.len() + self.port.len());
        }
        let in_url = before.ends_with(b"//") || before.ends_with(br"\/\/");
        (ends_name(after) && (self.is_qualified || in_url)).then_some(self.name.len())
    }
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Whether a name began before this position. The letters of an escape are not part of one.
fn continues_name(before: &[u8]) -> bool {
    let escaped = |length: usize| before.len().checked_sub(length).map(|at| &before[at..]);
    match (before.last(), escaped(2), escaped(6)) {
        (_, Some([b'\\', b'n' | b'r' | b't' | b'b' | b'f']), _)
        | (_, _, Some([b'\\', b'u', ..])) => false,
        (last, ..) => last.copied().is_some_and(is_name_byte),
    }
}

/// Whether the name ends here. A full stop ends a sentence as well.
fn ends_name(after: &[u8]) -> bool {
    match after {
        [b'.', next, ..] => !next.is_ascii_alphanumeric(),
        [b'.'] | [] => true,
        [next, ..] => !is_name_byte(*next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str, secrets: &[&str]) -> Option<String> {
        let secrets = with_base64(
            secrets
                .iter()
                .map(|secret| secret.as_bytes().to_vec())
                .collect(),
        );
        let kept = replace_found(text.as_bytes(), |at| {
            longest_credential(&secrets, &text.as_bytes()[at..])
        })?;
        Some(String::from_utf8(kept).expect("text"))
    }

    #[test]
    fn a_signature_is_found_behind_its_name() {
        let signature = "0123456789abcdef".repeat(4);
        let text = format!("SignedHeaders=host, Signature={signature} and {signature}");
        let kept = replace_found(text.as_bytes(), |at| signature_at(text.as_bytes(), at));
        let expected = format!("SignedHeaders=host, Signature=*** and {signature}");
        assert_eq!(kept, Some(expected.into_bytes()));
        let short = b"Signature=0123";
        assert_eq!(replace_found(short, |at| signature_at(short, at)), None);
    }

    #[test]
    fn a_credential_is_redacted_however_it_is_written() {
        let secrets = ["sk-a/b=c\"d\\e", "sk-a/b=c\"d\\e-and-more"];
        for (text, expected) in [
            (r#"key sk-a/b=c"d\e."#, "key ***."),
            (r#""key sk-a/b=c\"d\\e.""#, r#""key ***.""#),
            (r#"sk-a\/b\u003dc\u0022d\u005Ce"#, "***"),
            (r#"sk-sk-a/b=c"d\esk-a/b=c"d\e"#, "sk-******"),
            (r#"sk-a/b=c"d\e-and-more and more"#, "*** and more"),
            ("sk-a%2Fb%3dc%22d%5Ce", "***"),
            ("%73%6b-a/b%3Dc%22d%5ce!", "***!"),
        ] {
            assert_eq!(
                redacted(text, &secrets).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for before in ["", "u", "us", "user:", "Bearer "] {
            for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let text = alphabet.encode(format!("{before}{}?>", secrets[0]));
                let kept = redacted(&format!("[{text}]"), &secrets).expect(&text);
                // No more is left than the digits that the bytes beside it have a part in.
                assert!(kept.contains("***") && kept.len() < 20, "{text}: {kept}");
            }
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
            assert_eq!(redacted(text, &secrets), None, "{text}");
        }
    }

    #[test]
    fn an_upstreams_address_is_redacted_and_no_other_word() {
        let redacted = |(authority, port): (&str, u16), text: &str| {
            let base = BaseUrl {
                tls: true,
                host: String::new(),
                port,
                authority: authority.to_owned(),
                prefix: String::new(),
            };
            let (address, bytes) = (UpstreamAddress::new(&base), text.as_bytes());
            let kept = replace_found(bytes, |at| address.length_at(bytes, at))?;
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
            assert_eq!(redacted(base, text).as_deref(), Some(expected), "{text}");
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
            assert_eq!(redacted(base, text), None, "{text}");
        }
    }
}

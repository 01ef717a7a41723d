//! What the owner of a key does not get to see of an inspected request: credentials, whoever they belong to, and where
//! upstreams are.

use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, HOST, RETRY_AFTER,
    TRANSFER_ENCODING, VARY,
};
use http::{HeaderMap, HeaderName, Uri};

use super::super::upstream::redact::CaptureSecrets;
use crate::formats::AWS_ERROR_TYPE;

const HIDDEN: &str = "***";

/// Words in the names of headers and parameters that hold credentials.
const CREDENTIAL_WORDS: [&str; 14] = [
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "password",
    "secret",
    "sig",
    "signature",
    "token",
    "assertion",
];

/// Fields of bodies that hold credentials, without the signs between their words: tools of others are given some.
const CREDENTIAL_FIELDS: [&str; 18] = [
    "accesstoken",
    "apikey",
    "authorization",
    "authorizationtoken",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "cookie",
    "idtoken",
    "password",
    "privatekey",
    "proxyauthorization",
    "refreshtoken",
    "secretaccesskey",
    "sessiontoken",
    "setcookie",
    "xapikey",
    "xgoogapikey",
];

/// The fields of an upstream's response header that are shown: the values of others may name an account.
const SHOWN_OF_UPSTREAM: [HeaderName; 9] = [
    CONTENT_TYPE,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    CACHE_CONTROL,
    DATE,
    VARY,
    RETRY_AFTER,
    AWS_ERROR_TYPE,
];

/// The header of a message as text. Fields that hold credentials keep their names only.
pub(super) fn encode_head(first_line: &str, headers: &HeaderMap) -> String {
    encode_fields(first_line, headers, |name| !is_credential(name.as_str()))
}

/// The same of a request to an upstream, without where that is.
pub(super) fn encode_upstream_request_head(first_line: &str, headers: &HeaderMap) -> String {
    let is_shown = |name: &HeaderName| name != HOST && !is_credential(name.as_str());
    encode_fields(first_line, headers, is_shown)
}

/// The same of an upstream's response: of most fields only the names.
pub(super) fn encode_upstream_head(first_line: &str, headers: &HeaderMap) -> String {
    encode_fields(first_line, headers, |name| SHOWN_OF_UPSTREAM.contains(name))
}

fn encode_fields(
    first_line: &str,
    headers: &HeaderMap,
    is_shown: impl Fn(&HeaderName) -> bool,
) -> String {
    let mut head = first_line.to_owned();
    for (name, value) in headers {
        head.push('\n');
        head.push_str(name.as_str());
        head.push_str(": ");
        match is_shown(name) {
            true => head.push_str(&String::from_utf8_lossy(value.as_bytes())),
            false => head.push_str(HIDDEN),
        }
    }
    head
}

/// Path and query; parameters that hold credentials keep their names only.
pub(super) fn encode_target(uri: &Uri) -> String {
    let mut target = uri.path().to_owned();
    let pairs = uri.query().into_iter().flat_map(|query| query.split('&'));
    for (at, pair) in pairs.enumerate() {
        target.push(if at == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if is_credential(name) => {
                target.push_str(name);
                target.push('=');
                target.push_str(HIDDEN);
            }
            _ => target.push_str(pair),
        }
    }
    target
}

fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.any(|word| CREDENTIAL_WORDS.contains(&word)) || is_credential_field(name.as_bytes())
}

/// Redacts a header or another short text.
pub(super) fn redact_text(secrets: &CaptureSecrets<'_>, text: String) -> String {
    match secrets.redact_with_address(text.as_bytes()) {
        Some(redacted) => String::from_utf8_lossy(&redacted).into_owned(),
        None => text,
    }
}

/// Redacts the values of fields of JSON that hold credentials, wherever JSON stands in the text.
pub(super) fn redact_fields(bytes: Vec<u8>) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'"', &bytes[at..]) {
        let name_at = at + found + 1;
        let Some(name_end) = string_end(&bytes, name_at) else {
            at = name_at;
            continue;
        };
        at = name_end + 1;
        let value_at = match skip_space(&bytes, at) {
            colon if bytes.get(colon) == Some(&b':') => skip_space(&bytes, colon + 1),
            _ => continue,
        };
        if bytes.get(value_at) != Some(&b'"') || !is_credential_field(&bytes[name_at..name_end]) {
            continue;
        }
        // A value without an end was cut.
        let value_end = string_end(&bytes, value_at + 1).unwrap_or(bytes.len());
        kept.extend_from_slice(&bytes[from..=value_at]);
        kept.extend_from_slice(HIDDEN.as_bytes());
        (from, at) = (value_end, (value_end + 1).min(bytes.len()));
    }
    match from {
        0 => bytes,
        _ => [&kept, &bytes[from..]].concat(),
    }
}

/// Where a string ends whose first letter is here; `None`: it does not, on this line.
fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr3(b'"', b'\\', b'\n', &bytes[at..])?;
        match bytes[at] {
            b'"' => return Some(at),
            b'\\' => at = (at + 2).min(bytes.len()),
            _ => return None,
        }
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

fn is_credential_field(name: &[u8]) -> bool {
    if name.len() > 32 {
        return false;
    }
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let letters: Vec<u8> = letters.map(u8::to_ascii_lowercase).collect();
    // As in `X-Auth-Token`.
    let without_prefix = letters.strip_prefix(b"x").unwrap_or(&letters);
    CREDENTIAL_FIELDS
        .iter()
        .any(|field| field.as_bytes() == letters || field.as_bytes() == without_prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_parameters_with_credentials_keep_their_names() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer abc"),
            ("x-api-key", "abc"),
            ("x-amz-security-token", "abc"),
            ("set-cookie", "abc"),
            ("x-ratelimit-remaining-tokens", "9"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, value.parse().expect("a value"));
        }
        let uri: Uri = "/v1/models?key=abc&alt=sse&access_token=d&x-amz-signature=e"
            .parse()
            .expect("a target");
        assert_eq!(
            encode_target(&uri),
            "/v1/models?key=***&alt=sse&access_token=***&x-amz-signature=***"
        );
        let head = encode_head("GET /", &headers);
        let shown = [
            "GET /",
            "authorization: ***",
            "x-api-key: ***",
            "x-amz-security-token: ***",
            "set-cookie: ***",
            "x-ratelimit-remaining-tokens: 9",
            "accept: */*",
        ];
        assert_eq!(head.lines().collect::<Vec<_>>(), shown);
        headers.insert(HOST, "vllm".parse().expect("a value"));
        let head = encode_upstream_request_head("POST /v1", &headers);
        assert!(head.contains("\nhost: ***"), "{head}");
        assert!(head.contains("\naccept: */*"), "{head}");
        let uri: Uri = "/?accessToken=a".parse().expect("a target");
        assert_eq!(encode_target(&uri), "/?accessToken=***");
        let head = encode_upstream_head("200", &headers);
        assert!(head.contains("accept: ***"), "{head}");
    }

    #[test]
    fn fields_with_credentials_lose_their_values_and_no_others() {
        for (text, expected) in [
            (
                r#"{"tools":[{"authorization_token": "tok\"en","x":"y"}]}"#,
                r#"{"tools":[{"authorization_token": "***","x":"y"}]}"#,
            ),
            (
                "data: {\"headers\":{\"Authorization\":\"Bearer a\",\"X-Api-Key\":\"b\"}}\n\n",
                "data: {\"headers\":{\"Authorization\":\"***\",\"X-Api-Key\":\"***\"}}\n\n",
            ),
            (
                r#"{"headers":{"X-Auth-Token":"a"}}"#,
                r#"{"headers":{"X-Auth-Token":"***"}}"#,
            ),
            (r#"{"apiKey":"never ended"#, r#"{"apiKey":"***"#),
            (r#"{"token":"Hello","key":"k","signature":"s"}"#, ""),
            (r#"he said "password" : and no more"#, ""),
            (r#"a " b "#, ""),
            ("", ""),
        ] {
            let expected = if expected.is_empty() { text } else { expected };
            let redacted = redact_fields(text.as_bytes().to_vec());
            assert_eq!(String::from_utf8_lossy(&redacted), expected);
        }
    }
}

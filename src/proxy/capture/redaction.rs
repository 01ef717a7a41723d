//! What the owner of a key does not get to see of an inspected request: credentials, whoever they belong to, and where
//! upstreams are.

use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, HOST, RETRY_AFTER,
    TRANSFER_ENCODING, VARY,
};
use http::{HeaderMap, HeaderName, Uri};

use crate::formats::AWS_ERROR_TYPE;
use crate::proxy::upstream::redact::CaptureSecrets;

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

/// Redacts the values of fields of JSON that hold credentials, wherever JSON stands in the text, and in the strings of that.
pub(super) fn redact_fields(bytes: Vec<u8>) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::new();
    let mut from = 0;
    // Where the last quotation mark of each level ends, since the last one of a lower level.
    let mut last: Vec<Option<usize>> = Vec::new();
    let mut marks = QuotationMarks::new(&bytes);
    while let Some(mark) = marks.next() {
        last.resize(mark.level + 1, None);
        let name = last[mark.level].replace(mark.end);
        let name = name.and_then(|start| bytes.get(start..mark.start));
        if !name.is_some_and(is_credential_field) {
            continue;
        }
        let Some(value) = value_mark(&bytes, mark) else {
            continue;
        };
        // A value without an end was cut.
        let end = marks.find(|other| other.start >= value.end && other.level <= mark.level);
        kept.extend_from_slice(&bytes[from..value.end]);
        kept.extend_from_slice(HIDDEN.as_bytes());
        from = end.map_or(bytes.len(), |end| end.start);
        if let Some(end) = end {
            last.resize(end.level + 1, None);
            last[end.level] = Some(end.end);
        }
    }
    match from {
        0 => bytes,
        _ => [&kept, &bytes[from..]].concat(),
    }
}

/// The quotation mark with which the value of a name begins that ends with this one.
fn value_mark(bytes: &[u8], name_end: QuotationMark) -> Option<QuotationMark> {
    let colon = skip_space(bytes, name_end.end);
    if bytes.get(colon) != Some(&b':') {
        return None;
    }
    let start = skip_space(bytes, colon + 1);
    let rest = bytes.get(start..)?;
    let escapes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let mark = QuotationMark::read(bytes, start, start + escapes)?;
    (mark.level == name_end.level).then_some(mark)
}

/// A quotation mark, as it is or escaped.
#[derive(Clone, Copy)]
struct QuotationMark {
    start: usize,
    end: usize,
    /// In how many strings of JSON, each in the other, it stands: there it has no escape.
    level: usize,
}

/// The letters behind the backslash of a mark that is escaped by its number.
const MARK_NUMBER: &[u8] = b"u0022";

impl QuotationMark {
    /// Reads one whose backslashes begin at `escapes`, and end at `at`.
    fn read(bytes: &[u8], escapes: usize, at: usize) -> Option<QuotationMark> {
        let (mut count, mut level) = (at - escapes, 0);
        let length = match bytes.get(at)? {
            b'"' => 1,
            _ if bytes[at..].starts_with(MARK_NUMBER) && count > 0 => {
                // Each level of strings doubles the backslashes.
                while count % 2 == 0 {
                    (count, level) = (count / 2, level + 1);
                }
                MARK_NUMBER.len()
            }
            _ => return None,
        };
        while count % 2 == 1 {
            (count, level) = ((count - 1) / 2, level + 1);
        }
        Some(QuotationMark {
            start: escapes,
            end: at + length,
            level,
        })
    }
}

/// The quotation marks of a text in their order.
struct QuotationMarks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> QuotationMarks<'a> {
    const fn new(bytes: &'a [u8]) -> QuotationMarks<'a> {
        QuotationMarks { bytes, at: 0 }
    }
}

impl Iterator for QuotationMarks<'_> {
    type Item = QuotationMark;

    fn next(&mut self) -> Option<QuotationMark> {
        loop {
            let at = self.at + memchr::memchr2(b'"', b'\\', self.bytes.get(self.at..)?)?;
            let escapes = self.bytes[at..].iter().take_while(|byte| **byte == b'\\');
            let letter = at + escapes.count();
            let found = QuotationMark::read(self.bytes, at, letter);
            self.at = found.map_or(letter, |mark| mark.end).max(at + 1);
            if found.is_some() {
                return found;
            }
        }
    }
}

/// Skips white space, also as strings in strings write it.
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let escapes = rest.iter().take_while(|byte| **byte == b'\\').count();
        match rest.get(escapes) {
            Some(byte) if escapes == 0 && byte.is_ascii_whitespace() => at += 1,
            Some(b'n' | b'r' | b't') if escapes > 0 => at += escapes + 1,
            _ => return at,
        }
    }
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
            (
                r#"{"arguments":"{\"path\":\"/\",\n \"password\": \"a\\\"b\"}","x":"y"}"#,
                r#"{"arguments":"{\"path\":\"/\",\n \"password\": \"***\"}","x":"y"}"#,
            ),
            (
                r#"{"a":"{\"b\":\"{\\\"api_key\\\":\\\"k\\\",\\\"c\\\":1}\"}","password":"d"}"#,
                r#"{"a":"{\"b\":\"{\\\"api_key\\\":\\\"***\\\",\\\"c\\\":1}\"}","password":"***"}"#,
            ),
            (
                r#"{"a":"{\u0022password\u0022:\u0022b\u0022,\u0022c\u0022:1}"}"#,
                r#"{"a":"{\u0022password\u0022:\u0022***\u0022,\u0022c\u0022:1}"}"#,
            ),
            // Inside of a string that ends, or was cut, before the value does.
            (
                r#"{"a":"{\"password\":\"b","c":"d"}"#,
                r#"{"a":"{\"password\":\"***","c":"d"}"#,
            ),
            (r#"{"a":"{\"password\":\"b"#, r#"{"a":"{\"password\":\"***"#),
            (
                r#"{"password":"a\\","b":"c"}"#,
                r#"{"password":"***\\","b":"c"}"#,
            ),
            (r#"a " b "password":"c""#, r#"a " b "password":"***""#),
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

    #[test]
    fn a_string_without_an_end_is_read_once() {
        let started = std::time::Instant::now();
        for unit in [
            "\\\"",
            "\"",
            "\\",
            "\\u0022",
            "\"password\":",
            "\"password\":\"",
        ] {
            let text = format!("\"{}", unit.repeat((272 << 10) / unit.len()));
            redact_fields(text.into_bytes());
        }
        let took = started.elapsed();
        assert!(took.as_secs() < 10, "{took:?}");
    }
}

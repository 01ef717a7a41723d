//! AWS Signature Version 4: the headers that sign a request.
//!
//! Signed are the method, the path and query exactly as they are sent, the headers that AWS asks for, and the hash of the
//! body. AWS encodes the path once more before it checks the signature: a `%3A` on the wire is signed as `%253A`.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};

use crate::runtime::{AwsCredentials, SigningScope};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

const X_AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
const X_AMZ_SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// The header by which a request that Google sends to AWS names the pool of workloads that it is meant for.
pub(in crate::credentials) const GOOGLE_TARGET: &str = "x-goog-cloud-target-resource";

/// What of a request is signed beside its headers.
#[derive(Debug, Clone, Copy)]
pub(in crate::credentials) struct RequestToSign<'a> {
    pub(in crate::credentials) method: &'a str,
    /// Path and query, as they are sent.
    pub(in crate::credentials) target: &'a str,
    pub(in crate::credentials) body_hash: [u8; 32],
}

/// The hash of a body in any number of chunks.
pub(in crate::credentials) fn body_hash(
    chunks: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    for chunk in chunks {
        hash.update(chunk.as_ref());
    }
    hash.finalize().into()
}

/// Signs a request: adds the headers of the signature to its other headers. A request that is sent again later is signed
/// again. `None`: a header cannot hold the credentials.
pub(in crate::credentials) fn sign(
    headers: &mut HeaderMap,
    request: &RequestToSign<'_>,
    credentials: &AwsCredentials,
    scope: &SigningScope,
    now: Timestamp,
) -> Option<()> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let date = &time[..8];
    headers.insert(X_AMZ_DATE, HeaderValue::from_str(&time).ok()?);
    headers.remove(X_AMZ_SECURITY_TOKEN);
    if let Some(token) = &credentials.session_token {
        let token = sensitive(token.expose_secret())?;
        headers.insert(X_AMZ_SECURITY_TOKEN, token);
    }
    let signed = signed_headers(headers);
    let canonical = canonical_request(request, headers, &signed);
    let scope_text = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
    let hash = hex(&Sha256::digest(canonical.as_bytes()));
    let to_sign = format!("{ALGORITHM}\n{time}\n{scope_text}\n{hash}");
    let secret = format!("AWS4{}", credentials.secret_access_key.expose_secret());
    let parts = [date, &scope.region, &scope.service, "aws4_request"];
    let key = parts
        .iter()
        .fold(secret.into_bytes(), |key, part| hmac(&key, part).to_vec());
    let signature = hex(&hmac(&key, &to_sign));
    let (id, names) = (&credentials.access_key_id, signed.join(";"));
    let value = format!(
        "{ALGORITHM} Credential={id}/{scope_text}, SignedHeaders={names}, Signature={signature}"
    );
    headers.insert(AUTHORIZATION, sensitive(&value)?);
    Some(())
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The names of the headers to sign, in order: what no hop on the way changes.
fn signed_headers(headers: &HeaderMap) -> Vec<&str> {
    let is_signed = |name: &&HeaderName| {
        *name == HOST
            || *name == CONTENT_TYPE
            || *name == GOOGLE_TARGET
            || name.as_str().starts_with("x-amz")
    };
    let names = headers.keys().filter(is_signed);
    let mut names: Vec<&str> = names
        .map(HeaderName::as_str)
        .filter(|name| *name != "x-amzn-trace-id")
        .collect();
    names.sort_unstable();
    names
}

fn canonical_request(request: &RequestToSign<'_>, headers: &HeaderMap, signed: &[&str]) -> String {
    let (path, query) = request
        .target
        .split_once('?')
        .unwrap_or((request.target, ""));
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    let mut text = format!("{}\n{}\n", request.method, canonical_path(path));
    for (number, (name, value)) in pairs.into_iter().enumerate() {
        let and = if number == 0 { "" } else { "&" };
        let _ = write!(text, "{and}{name}={value}");
    }
    text.push('\n');
    for name in signed {
        let values = headers.get_all(*name).iter();
        let values: Vec<String> = values.map(canonical_value).collect();
        let _ = writeln!(text, "{name}:{}", values.join(","));
    }
    let _ = write!(text, "\n{}\n{}", signed.join(";"), hex(&request.body_hash));
    text
}

/// A header's value with single spaces between its words.
fn canonical_value(value: &HeaderValue) -> String {
    let value = String::from_utf8_lossy(value.as_bytes());
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    words.join(" ")
}

/// The path without empty segments and dots, and with each other byte encoded once more.
fn canonical_path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut text = String::with_capacity(path.len() + 16);
    for segment in &segments {
        text.push('/');
        for byte in segment.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    text.push(byte.into());
                }
                _ => {
                    let _ = write!(text, "%{byte:02X}");
                }
            }
        }
    }
    if path.ends_with('/') || segments.is_empty() {
        text.push('/');
    }
    text
}

fn hmac(key: &[u8], text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
#[path = "tests/signature.rs"]
mod tests;

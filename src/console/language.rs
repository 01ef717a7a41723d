//! The language of a request: the one that was chosen, or the one that the browser asks for.

use axum::http::{HeaderMap, header};
use axum_extra::extract::CookieJar;

use super::texts::Texts;

pub const LANGUAGE_COOKIE: &str = "omniglot_language";

/// The texts for whoever sent these headers.
pub fn language_of(headers: &HeaderMap) -> &'static Texts {
    let jar = CookieJar::from_headers(headers);
    match jar.get(LANGUAGE_COOKIE) {
        Some(cookie) => Texts::of(cookie.value()),
        None => Texts::of(accepted_language(headers)),
    }
}

/// The language that a browser asks for first, of those there are.
fn accepted_language(headers: &HeaderMap) -> &str {
    let accepted = headers.get(header::ACCEPT_LANGUAGE);
    let accepted = accepted
        .and_then(|value| value.to_str().ok())
        .unwrap_or("en");
    let mut tags = accepted
        .split(',')
        .map(|tag| tag.split(';').next().unwrap_or_default().trim());
    let known = tags.find(|tag| tag.starts_with("en") || tag.starts_with("zh"));
    known.unwrap_or("en")
}

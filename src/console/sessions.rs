//! Sessions: a random token in a cookie, its hash in the store.

use axum::http::HeaderMap;
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};

use super::actor::{Actor, ConsoleCall, SignedIn, now};
use super::refusal::Refusal;
use super::state::Console;
use super::tokens::{NewToken, token_hash};
use crate::config::ConsoleConfig;
use crate::store::{NewSession, Person};

/// A browser sends a cookie of this name only where it was set over https, by this host.
const SECURE_COOKIE: &str = "__Host-omniglot";
/// Without https, on this machine.
const PLAIN_COOKIE: &str = "omniglot_session";

/// How old the note of the last request may be, in milliseconds: not every request writes.
const NOTED_EVERY: i64 = 60_000;

/// Longer names of browsers are cut.
const MAX_AGENT: usize = 200;

fn cookie_name(settings: &ConsoleConfig) -> &'static str {
    match settings.is_https() {
        true => SECURE_COOKIE,
        false => PLAIN_COOKIE,
    }
}

/// The cookie of a session.
pub fn session_cookie(settings: &ConsoleConfig, token: String) -> Cookie<'static> {
    Cookie::build((cookie_name(settings), token))
        .path("/")
        .http_only(true)
        .secure(settings.is_https())
        .same_site(SameSite::Lax)
        .build()
}

/// The cookie that takes the place of a session's, and ends at once.
pub fn ended_cookie(settings: &ConsoleConfig) -> Cookie<'static> {
    let mut cookie = session_cookie(settings, String::new());
    cookie.make_removal();
    cookie
}

/// The name of the cookie of a sign-in that waits for a code.
fn pending_name(settings: &ConsoleConfig) -> &'static str {
    match settings.is_https() {
        true => "__Host-omniglot-code",
        false => "omniglot_code",
    }
}

/// The cookie of a sign-in that waits for a code. It opens nothing.
pub fn pending_cookie(settings: &ConsoleConfig, token: String) -> Cookie<'static> {
    let mut cookie = session_cookie(settings, token);
    cookie.set_name(pending_name(settings));
    cookie
}

pub fn ended_pending_cookie(settings: &ConsoleConfig) -> Cookie<'static> {
    let mut cookie = pending_cookie(settings, String::new());
    cookie.make_removal();
    cookie
}

/// The token of that cookie.
pub fn pending_token(settings: &ConsoleConfig, headers: &HeaderMap) -> String {
    let jar = CookieJar::from_headers(headers);
    let cookie = jar.get(pending_name(settings));
    cookie
        .map(|cookie| cookie.value().to_owned())
        .unwrap_or_default()
}

/// The cookie of a visit to an identity provider.
pub fn flow_cookie(settings: &ConsoleConfig, value: String) -> Cookie<'static> {
    let mut cookie = session_cookie(settings, value);
    cookie.set_name(flow_name(settings));
    cookie
}

fn flow_name(settings: &ConsoleConfig) -> &'static str {
    match settings.is_https() {
        true => "__Host-omniglot-identity",
        false => "omniglot_identity",
    }
}

pub fn ended_flow_cookie(settings: &ConsoleConfig) -> Cookie<'static> {
    let mut cookie = flow_cookie(settings, String::new());
    cookie.make_removal();
    cookie
}

/// The value of that cookie.
pub fn flow_value(settings: &ConsoleConfig, headers: &HeaderMap) -> String {
    let jar = CookieJar::from_headers(headers);
    let cookie = jar.get(flow_name(settings));
    cookie
        .map(|cookie| cookie.value().to_owned())
        .unwrap_or_default()
}

/// Who is signed in, by the cookie of a request.
pub async fn actor_of(console: &Console, headers: &HeaderMap) -> Result<Actor, Refusal> {
    let jar = CookieJar::from_headers(headers);
    let Some(cookie) = jar.get(cookie_name(&console.settings)) else {
        return Ok(Actor::Anonymous);
    };
    let sha256 = token_hash(cookie.value());
    let now = now();
    let idle = milliseconds(console.settings.session.idle);
    let found = console.store.session(&sha256, now, now - idle).await?;
    let Some((session, person)) = found else {
        return Ok(Actor::Anonymous);
    };
    if now - session.seen > NOTED_EVERY {
        console.store.touch_session(&sha256, now).await?;
    }
    Ok(Actor::Person(Box::new(SignedIn { person, session })))
}

/// Begins a session, and returns its token. `stepped_up`: when the person last proved who it is.
pub async fn begin(
    call: &ConsoleCall,
    person: &Person,
    stepped_up: i64,
) -> Result<String, Refusal> {
    let token = NewToken::generate();
    let now = now();
    let absolute = milliseconds(call.console.settings.session.absolute);
    let session = NewSession {
        sha256: token.sha256,
        now,
        expires: now.saturating_add(absolute),
        stepped_up,
        remote: call.remote_text(),
        agent: call.agent.chars().take(MAX_AGENT).collect(),
    };
    let entry = call.audit("session.begin", &person.handle, String::new());
    let store = &call.console.store;
    store.create_session(person, &session, &entry).await?;
    Ok(token.token)
}

fn milliseconds(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 2)
}

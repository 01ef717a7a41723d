//! Language and theme, kept in cookies: they are of the browser, not of the person.

use axum::extract::Form;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use serde::Deserialize;

use super::visit::{THEME_COOKIE, Visit, local_path, theme_word};
use crate::console::language::LANGUAGE_COOKIE;
use crate::console::texts::Texts;

#[derive(Deserialize)]
pub struct PreferencesForm {
    #[serde(default)]
    language: String,
    #[serde(default)]
    theme: String,
    #[serde(default)]
    next: String,
}

pub async fn submit(visit: Visit, Form(form): Form<PreferencesForm>) -> Response {
    let is_https = visit.call.console.settings.is_https();
    let cookie = |name: &'static str, value: &'static str| {
        Cookie::build((name, value))
            .path("/")
            .http_only(true)
            .secure(is_https)
            .same_site(SameSite::Lax)
            .permanent()
            .build()
    };
    let jar = CookieJar::new()
        .add(cookie(LANGUAGE_COOKIE, Texts::of(&form.language).tag))
        .add(cookie(THEME_COOKIE, theme_word(&form.theme)));
    (jar, Redirect::to(local_path(&form.next))).into_response()
}

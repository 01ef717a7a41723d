//! One request for a page: who asks, in which language and theme, and how refusals look.

use std::sync::Arc;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum_extra::extract::CookieJar;
use url::form_urlencoded;

use crate::console::actor::{Actor, ConsoleCall};
use crate::console::assets::{self, AssetPaths};
use crate::console::language::language_of;
use crate::console::operations::catalog;
use crate::console::operations::session::{Begun, Entered};
use crate::console::refusal::Refusal;
use crate::console::sessions::{pending_cookie, session_cookie};
use crate::console::state::Console;
use crate::console::texts::Texts;
use crate::console::views::PersonView;

/// The parts of the console that may be for everybody.
pub const TRANSLATE_SECTION: &str = "translate";
pub const MODELS_SECTION: &str = "models";
pub const FIDELITY_SECTION: &str = "fidelity";

pub const THEME_COOKIE: &str = "omniglot_theme";

/// What every page has.
#[derive(Clone)]
pub struct Page {
    pub texts: &'static Texts,
    /// `auto`, `light` or `dark`.
    pub theme: &'static str,
    pub person: Option<PersonView>,
    pub is_admin: bool,
    /// The catalog is for who asks.
    pub shows_models: bool,
    /// The part of the console that the page belongs to.
    pub section: &'static str,
    pub path: String,
    pub assets: AssetPaths,
    /// What went well.
    pub note: Option<&'static str>,
    /// What did not.
    pub problem: Option<String>,
}

impl Page {
    /// The first letter of the person's name.
    pub fn initial(&self) -> String {
        let name = self.person.as_ref().map(|person| person.display.as_str());
        let first = name.and_then(|name| name.chars().next());
        first.map(String::from).unwrap_or_default()
    }

    /// It is a page for who is not signed in, and no more than a card in the middle.
    pub fn is_outside(&self) -> bool {
        let public = [TRANSLATE_SECTION, MODELS_SECTION, FIDELITY_SECTION];
        self.person.is_none() && !public.contains(&self.section)
    }

    pub fn in_section(mut self, section: &'static str) -> Page {
        self.section = section;
        self
    }

    pub fn with_problem(mut self, refusal: &Refusal) -> Page {
        self.problem = Some(self.texts.refusal(refusal));
        self
    }
}

/// A request for a page.
pub struct Visit {
    pub call: ConsoleCall,
    pub page: Page,
}

impl FromRequestParts<Arc<Console>> for Visit {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        console: &Arc<Console>,
    ) -> Result<Visit, Response> {
        let mut page = page_of(parts);
        let call = ConsoleCall::from_request_parts(parts, console).await;
        let call = call.map_err(|refusal| refused(page.clone(), &refusal))?;
        if let Actor::Person(signed_in) = &call.actor {
            page.person = Some(PersonView::from(&signed_in.person));
            page.is_admin = call.is_admin();
        }
        page.shows_models = page.person.is_some() || catalog::is_public(&call);
        Ok(Visit { call, page })
    }
}

/// One of the themes there are.
pub fn theme_word(word: &str) -> &'static str {
    match word {
        "light" => "light",
        "dark" => "dark",
        _ => "auto",
    }
}

fn page_of(parts: &Parts) -> Page {
    let jar = CookieJar::from_headers(&parts.headers);
    let texts = language_of(&parts.headers);
    let theme = jar
        .get(THEME_COOKIE)
        .map(|cookie| theme_word(cookie.value()));
    let query = parts.uri.query().unwrap_or_default();
    let mut query = form_urlencoded::parse(query.as_bytes());
    let note = query.find(|(name, _)| name == "note");
    let note = note.and_then(|(_, word)| match &*word {
        "saved" => Some(texts.saved_note),
        "revoked" => Some(texts.revoked_note),
        "alert-deleted" => Some(texts.alerts.deleted_note),
        "alert-tested" => Some(texts.alerts.tested_note),
        "verified" => Some(texts.verified_note),
        "verify-sent" => Some(texts.verify_sent_note),
        "joined" => Some(texts.team.joined_note),
        "invited" => Some(texts.team.invited_note),
        "left" => Some(texts.team.left_note),
        _ => None,
    });
    Page {
        texts,
        theme: theme.unwrap_or("auto"),
        person: None,
        is_admin: false,
        shows_models: false,
        section: "",
        path: parts.uri.path().to_owned(),
        assets: assets::paths(),
        note,
        problem: None,
    }
}

impl Visit {
    /// The response to a refusal: sign in, enter the password again, or a page that says why.
    pub fn refuse(&self, refusal: &Refusal) -> Response {
        match refusal {
            Refusal::SignInNeeded => redirect_with_next("/sign-in", &self.page.path),
            Refusal::ConfirmPassword => redirect_with_next("/confirm", &self.page.path),
            _ => refused(self.page.clone(), refusal),
        }
    }

    /// Goes on after the password: with a session, or to the page that asks for a code.
    pub fn enter(&self, entered: Entered, next: &str) -> Response {
        match entered {
            Entered::Session(begun) => self.begin(begun, next),
            Entered::CodeNeeded(token) => {
                let cookie = pending_cookie(&self.call.console.settings, token);
                let code = redirect_with_next("/sign-in/code", local_path(next));
                (CookieJar::new().add(cookie), code).into_response()
            }
        }
    }

    /// Goes on with the cookie of a session that has begun.
    pub fn begin(&self, begun: Begun, next: &str) -> Response {
        let cookie = session_cookie(&self.call.console.settings, begun.token);
        let jar = CookieJar::new().add(cookie);
        (jar, Redirect::to(local_path(next))).into_response()
    }
}

fn redirect_with_next(to: &str, path: &str) -> Response {
    let next = form_urlencoded::Serializer::new(String::new())
        .append_pair("next", path)
        .finish();
    Redirect::to(&format!("{to}?{next}")).into_response()
}

/// Where to go on: a path of the console, never another site.
pub fn local_path(next: &str) -> &str {
    let is_local = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && next.bytes().all(|byte| byte.is_ascii_graphic());
    match is_local {
        true => next,
        false => "/",
    }
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    page: Page,
    title: &'static str,
    reason: String,
}

fn refused(page: Page, refusal: &Refusal) -> Response {
    let title = match refusal {
        Refusal::NotFound => page.texts.not_found_title,
        _ => page.texts.refused_title,
    };
    let reason = page.texts.refusal(refusal);
    let template = RefusedPage {
        page,
        title,
        reason,
    };
    render(&template, status_of(refusal))
}

pub fn status_of(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A page as a response.
pub fn render(template: &impl Template, status: StatusCode) -> Response {
    match template.render() {
        Ok(text) => {
            let mut response = (status, Html(text)).into_response();
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, html);
            response
        }
        Err(error) => {
            log::error!("console: a page cannot be rendered: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_template_writes_anything_unescaped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/console/templates");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).expect("the templates") {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("text");
            for unescaped in [
                "|safe",
                "| safe",
                "|escape",
                "|json",
                "<style",
                " style=",
                "javascript:",
                " onclick",
            ] {
                assert!(!text.contains(unescaped), "{}: {unescaped}", path.display());
            }
            assert!(
                path.extension()
                    .is_some_and(|extension| extension == "html")
            );
            count += 1;
        }
        assert!(count > 10, "the templates were found");
    }

    #[test]
    fn the_next_page_is_one_of_the_console() {
        assert_eq!(local_path("/keys/1?note=saved"), "/keys/1?note=saved");
        for foreign in [
            "",
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "keys",
            "/a\r\nb",
            "javascript:x",
        ] {
            assert_eq!(local_path(foreign), "/", "{foreign}");
        }
    }
}

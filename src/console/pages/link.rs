//! The page that shows a link once: the response itself, for the link is kept nowhere.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::visit::{Page, render};
use crate::console::texts::fill;
use crate::console::views::LinkView;

#[derive(Template)]
#[template(path = "link.html")]
struct LinkPage {
    page: Page,
    link: LinkView,
    lead: &'static str,
    valid: String,
    mailed: Option<String>,
    back: String,
}

/// Shows a link; `back` is where to go on.
pub fn show_link(
    page: Page,
    link: LinkView,
    lead: &'static str,
    mailed_to: Option<String>,
    back: String,
) -> Response {
    let template = LinkPage {
        valid: fill(page.texts.valid_until, page.texts.moment(link.expires)),
        mailed: mailed_to.map(|email| fill(page.texts.link_mailed, email)),
        page,
        link,
        lead,
        back,
    };
    render(&template, StatusCode::CREATED)
}

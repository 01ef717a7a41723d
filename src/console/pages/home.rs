//! The first page of a person.

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};

use super::visit::{Page, Visit, render};
use crate::console::operations::home::{self, HomeInput};
use crate::console::views::HomeView;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    page: Page,
    home: HomeView,
    failed: String,
    may_write: bool,
    new_key: String,
}

pub async fn show(visit: Visit, Query(input): Query<HomeInput>) -> Response {
    if visit.page.person.is_none() {
        return Redirect::to("/sign-in").into_response();
    }
    let home = match home::get_home(&visit.call, &input).await {
        Ok(home) => home,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let may_write = visit.call.check_may_write(&home.account).await.is_ok();
    let template = HomePage {
        failed: visit.page.texts.count(home.today.failed()),
        page: visit.page.in_section("home"),
        may_write,
        new_key: format!("/accounts/{}/new-key", home.account),
        home,
    };
    render(&template, StatusCode::OK)
}

//! Requests: a list with filters, and one request with its bill.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;

use super::usage::{SECTION, link};
use super::visit::{Page, Visit, render};
use crate::console::operations::keys;
use crate::console::operations::usage::{self, RequestsInput};
use crate::console::refusal::Refusal;
use crate::console::texts::fill;
use crate::console::views::{AccountView, BillLineView, Difference, RequestLineView, RequestView};

#[derive(Template)]
#[template(path = "requests.html")]
struct RequestsPage {
    page: Page,
    input: RequestsInput,
    accounts: Vec<AccountView>,
    keys: Vec<String>,
    requests: Vec<RequestLineView>,
    next: Option<String>,
}

impl RequestsPage {
    fn link(&self, path: &str, after: &str) -> String {
        let input = &self.input;
        let yes = |is_set: bool| if is_set { "true" } else { "" };
        link(
            path,
            &[
                ("from", &input.from),
                ("until", &input.until),
                ("account", &input.account),
                ("key", &input.key),
                ("model", &input.model),
                ("failed", yes(input.failed)),
                ("estimated", yes(input.estimated)),
                ("after", after),
            ],
        )
    }

    fn overview(&self) -> String {
        let input = &self.input;
        link(
            "/usage",
            &[
                ("from", &input.from),
                ("until", &input.until),
                ("account", &input.account),
                ("key", &input.key),
                ("model", &input.model),
            ],
        )
    }
}

pub async fn list(visit: Visit, Query(input): Query<RequestsInput>) -> Response {
    let found = async {
        let requests = usage::list_requests(&visit.call, &input).await?;
        let keys = usage::list_key_names(&visit.call, &input.usage()).await?;
        let accounts = keys::list_accounts(&visit.call).await?;
        Ok::<_, Refusal>((requests, keys, accounts))
    };
    match found.await {
        Ok((found, keys, accounts)) => {
            let template = RequestsPage {
                page: visit.page.in_section(SECTION),
                input: RequestsInput {
                    from: found.from,
                    until: found.until,
                    ..input
                },
                accounts,
                keys,
                requests: found.requests,
                next: found.next,
            };
            render(&template, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

#[derive(Template)]
#[template(path = "request.html")]
struct RequestPage {
    page: Page,
    request: RequestView,
}

impl RequestPage {
    /// How much of something there was.
    fn count(&self, line: &BillLineView) -> String {
        match line.unit {
            "second" | "minute" => self.page.texts.seconds(line.count),
            _ => self.page.texts.count(line.count),
        }
    }

    /// The price of something.
    fn price(&self, line: &BillLineView) -> String {
        let texts = &self.page.texts.usage;
        let price = self.page.texts.amount(line.price.0);
        match line.unit {
            "million_tokens" => fill(texts.per_million, price),
            "second" => fill(texts.per_second, price),
            "minute" => fill(texts.per_minute, price),
            _ => price,
        }
    }

    fn difference(&self, difference: &Difference) -> String {
        let sign = if difference.is_taken_off { "−" } else { "" };
        format!("{sign}{}", self.page.texts.amount(difference.amount))
    }
}

pub async fn show(visit: Visit, Path(id): Path<String>) -> Response {
    match usage::get_request(&visit.call, &id).await {
        Ok(request) => {
            let template = RequestPage {
                page: visit.page.in_section(SECTION),
                request,
            };
            render(&template, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

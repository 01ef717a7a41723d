//! Upstreams and the loaded config, for administrators.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::people::SECTION;
use super::visit::{Page, Visit, render};
use crate::console::operations::{loaded_config, upstreams};
use crate::console::views::{LoadedConfigView, UpstreamView};

#[derive(Template)]
#[template(path = "upstreams.html")]
struct UpstreamsPage {
    page: Page,
    upstreams: Vec<UpstreamView>,
}

#[derive(Template)]
#[template(path = "loaded_config.html")]
struct LoadedConfigPage {
    page: Page,
    config: LoadedConfigView,
}

pub async fn list_upstreams(visit: Visit) -> Response {
    match upstreams::list_upstreams(&visit.call).await {
        Ok(upstreams) => {
            let page = visit.page.in_section(SECTION);
            render(&UpstreamsPage { page, upstreams }, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn show_config(visit: Visit) -> Response {
    match loaded_config::get_config(&visit.call).await {
        Ok(config) => {
            let page = visit.page.in_section(SECTION);
            render(&LoadedConfigPage { page, config }, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

//! The audit log, for administrators.

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;

use super::people::SECTION;
use super::usage::link;
use super::visit::{Page, Visit, render};
use crate::console::operations::audit::{self, AuditInput};
use crate::console::views::AuditLineView;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    page: Page,
    input: AuditInput,
    changes: Vec<AuditLineView>,
    next: Option<String>,
}

impl AuditPage {
    fn link(&self, after: &str) -> String {
        let input = &self.input;
        link(
            "/audit",
            &[
                ("actor", &input.actor),
                ("action", &input.action),
                ("target", &input.target),
                ("after", after),
            ],
        )
    }
}

pub async fn list(visit: Visit, Query(input): Query<AuditInput>) -> Response {
    match audit::list_changes(&visit.call, &input).await {
        Ok(found) => {
            let template = AuditPage {
                page: visit.page.in_section(SECTION),
                input,
                changes: found.changes,
                next: found.next,
            };
            render(&template, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

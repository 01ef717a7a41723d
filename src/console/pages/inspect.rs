//! An inspection, and one request of it in four panes with its timeline.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};

use super::json_text::indented;
use super::visit::{Page, Visit, render};
use crate::console::operations::inspect;
use crate::console::views::{CaptureView, InspectionView, MessageView, TimelineEventView};

const SECTION: &str = "keys";

/// How wide the picture of a timeline is, in its own units.
const TIMELINE_WIDTH: f64 = 1000.0;

#[derive(Template)]
#[template(path = "inspection.html")]
struct InspectionPage {
    page: Page,
    inspection: InspectionView,
}

#[derive(Template)]
#[template(path = "capture.html")]
struct CapturePage {
    page: Page,
    inspection: InspectionView,
    capture: CaptureView,
    panes: Vec<Pane>,
    earlier: Vec<EarlierPanes>,
}

/// One of the four sides of a request.
pub(super) struct Pane {
    pub(super) title: String,
    pub(super) message: Option<MessageView>,
    /// The body as it is shown: JSON with an indentation.
    pub(super) body: String,
}

impl Pane {
    fn new(title: String, message: Option<&MessageView>) -> Pane {
        Pane {
            title,
            body: message.map_or_else(String::new, |message| indented(&message.body)),
            message: message.cloned(),
        }
    }
}

/// What an upstream was sent and answered before the one that answered the client.
pub(super) struct EarlierPanes {
    upstream: String,
    panes: [Pane; 2],
}

/// The four panes of a request, and those of its earlier attempts.
pub(super) fn panes_of(page: &Page, capture: &CaptureView) -> (Vec<Pane>, Vec<EarlierPanes>) {
    let texts = &page.texts.inspect;
    let format = capture.line.format;
    let (last, earlier) = match capture.attempts.split_last() {
        Some((last, earlier)) => (Some(last), earlier),
        None => (None, &[][..]),
    };
    let to_upstream = |title: &str| match last {
        Some(attempt) => format!("{title} · {} · {}", attempt.upstream, attempt.format),
        None => title.to_owned(),
    };
    let of_client = |title: &str| format!("{title} · {format}");
    let panes = vec![
        Pane::new(
            of_client(texts.client_request),
            capture.client_request.as_ref(),
        ),
        Pane::new(
            to_upstream(texts.upstream_request),
            last.and_then(|attempt| attempt.request.as_ref()),
        ),
        Pane::new(
            to_upstream(texts.upstream_response),
            last.and_then(|attempt| attempt.response.as_ref()),
        ),
        Pane::new(
            of_client(texts.client_response),
            capture.client_response.as_ref(),
        ),
    ];
    let earlier = earlier.iter().map(|attempt| EarlierPanes {
        upstream: attempt.upstream.clone(),
        panes: [
            Pane::new(texts.upstream_request.to_owned(), attempt.request.as_ref()),
            Pane::new(
                texts.upstream_response.to_owned(),
                attempt.response.as_ref(),
            ),
        ],
    });
    (panes, earlier.collect())
}

impl CapturePage {
    fn has_no_losses(&self) -> bool {
        let capture = &self.capture;
        let lists = [
            &capture.dropped,
            &capture.adjusted,
            &capture.response_dropped,
            &capture.response_adjusted,
        ];
        lists.into_iter().all(Vec::is_empty)
    }

    fn offset(&self, event: &TimelineEventView) -> String {
        format!("{:.1}", event.ms)
    }

    /// Where an event stands in the picture of the timeline.
    fn position(&self, event: &TimelineEventView) -> String {
        let last = self.capture.timeline.last();
        let whole = last.map_or(1.0, |last| last.ms.max(0.001));
        format!("{:.1}", event.ms / whole * (TIMELINE_WIDTH - 3.0))
    }
}

pub async fn start(visit: Visit, Path(key): Path<String>) -> Response {
    match inspect::start_inspection(&visit.call, &key).await {
        Ok(started) => Redirect::to(&format!("/inspections/{}", started.id)).into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

/// Ends the inspection of a key, and goes back to what it captured.
pub async fn end(visit: Visit, Path(key): Path<String>) -> Response {
    let ended = async {
        let found = inspect::find_inspection(&visit.call, &key).await?;
        inspect::end_inspection(&visit.call, &key).await?;
        Ok(found.map(|found| found.id).unwrap_or_default())
    };
    match ended.await {
        Ok(id) => Redirect::to(&format!("/inspections/{id}")).into_response(),
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn show(visit: Visit, Path(id): Path<String>) -> Response {
    match inspect::get_inspection(&visit.call, &id).await {
        Ok(inspection) => {
            let page = visit.page.in_section(SECTION);
            render(&InspectionPage { page, inspection }, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}

pub async fn show_capture(visit: Visit, Path((id, number)): Path<(String, u32)>) -> Response {
    let found = async {
        let inspection = inspect::get_inspection(&visit.call, &id).await?;
        let capture = inspect::get_capture(&visit.call, &id, number).await?;
        Ok((inspection, capture))
    };
    let (inspection, capture) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let page = visit.page.in_section(SECTION);
    let (panes, earlier) = panes_of(&page, &capture);
    let template = CapturePage {
        page,
        inspection,
        capture,
        panes,
        earlier,
    };
    render(&template, StatusCode::OK)
}

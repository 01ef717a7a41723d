//! A conversation with a model, and what its last message became.

use std::time::Duration;

use askama::Template;
use axum::extract::Form;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::time::timeout;

use super::inspect::{Pane, panes_of};
use super::visit::{Page, Visit, render, status_of};
use crate::console::explorer::format_title;
use crate::console::operations::inspect;
use crate::console::operations::play::{self, FORMATS, PlayInput};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{PlayEventView, PlayOptionsView, PlayOutcomeView};
use crate::model::Format;

/// How long a page waits for an answer: browsers are answered within half a minute.
const PAGE_TIME: Duration = Duration::from_secs(25);

/// The fields of the form: a conversation has many of one name.
type FormPairs = Vec<(String, String)>;

#[derive(Template)]
#[template(path = "play.html")]
struct PlayPage {
    page: Page,
    options: PlayOptionsView,
    input: PlayInput,
    /// What was not answered, to be sent again.
    message: String,
    reasoning: String,
    /// Why the last message has no answer, in the words of the gateway.
    failed: Option<String>,
    outcome: Option<PlayOutcomeView>,
    panes: Vec<Pane>,
}

impl PlayPage {
    const fn formats(&self) -> [Format; 4] {
        FORMATS
    }

    fn format_title(&self, format: &Format) -> &'static str {
        format_title(*format)
    }

    /// The titles of the panes, before there is anything in them.
    const fn titles(&self) -> [&'static str; 4] {
        let texts = &self.page.texts.inspect;
        [
            texts.client_request,
            texts.upstream_request,
            texts.upstream_response,
            texts.client_response,
        ]
    }

    /// Tells whether the turn at a place is the person's own.
    fn is_own(&self, at: &usize) -> bool {
        at.is_multiple_of(2)
    }
}

pub async fn show(visit: Visit) -> Response {
    let input = PlayInput {
        format: Format::Chat.name().to_owned(),
        ..PlayInput::default()
    };
    respond(visit, input, String::new(), None).await
}

/// Sends a message, and answers with the whole page when all of the answer is there.
pub async fn submit(visit: Visit, form: Result<Form<FormPairs>, FormRejection>) -> Response {
    let Ok(Form(pairs)) = form else {
        return visit.refuse(&InputProblem::InputTooLarge(32).into());
    };
    let mut input = PlayInput::default();
    let mut message = String::new();
    for (name, value) in pairs {
        // Browsers end lines of forms with both.
        let value = value.replace("\r\n", "\n");
        match name.as_str() {
            "key" => input.key = value,
            "model" => input.model = value,
            "format" => input.format = value,
            "system" => input.system = value,
            "turn" => input.turns.push(value),
            "message" => message = value,
            _ => {}
        }
    }
    input.turns.push(message.clone());
    let played = play::play(&visit.call, &input).await;
    let mut answer = match played {
        Ok(answer) => answer,
        Err(refusal) => {
            input.turns.pop();
            return respond(visit, input, message, Some(Err(refusal))).await;
        }
    };
    let mut played = Played::default();
    let reading = async {
        while let Some(event) = answer.next().await {
            played.add(event);
        }
    };
    if timeout(PAGE_TIME, reading).await.is_err() {
        played.failed = Some(visit.page.texts.play.too_long.to_owned());
    }
    match played.failed.is_some() && played.text.is_empty() {
        true => {
            input.turns.pop();
        }
        false => {
            input.turns.push(played.text.clone());
            message.clear();
        }
    }
    respond(visit, input, message, Some(Ok(played))).await
}

/// An answer, when all of it is there.
#[derive(Default)]
struct Played {
    text: String,
    reasoning: String,
    failed: Option<String>,
    outcome: Option<PlayOutcomeView>,
}

impl Played {
    fn add(&mut self, event: PlayEventView) {
        match event {
            PlayEventView::Text { text } => self.text.push_str(&text),
            PlayEventView::Reasoning { text } => self.reasoning.push_str(&text),
            PlayEventView::Failed { message } => self.failed = Some(message),
            PlayEventView::Done(outcome) => self.outcome = Some(outcome),
        }
    }
}

async fn respond(
    visit: Visit,
    input: PlayInput,
    message: String,
    played: Option<Result<Played, Refusal>>,
) -> Response {
    let options = match play::list_options(&visit.call).await {
        Ok(options) => options,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let mut page = visit.page.in_section("play");
    let mut status = StatusCode::OK;
    let played = match played {
        Some(Err(refusal)) => {
            page = page.with_problem(&refusal);
            status = status_of(&refusal);
            Played::default()
        }
        Some(Ok(played)) => played,
        None => Played::default(),
    };
    let inspection = played.outcome.as_ref();
    let inspection = inspection.and_then(|outcome| outcome.inspection.as_deref());
    let mut panes = Vec::new();
    if let Some(id) = inspection
        && let Ok(capture) = inspect::get_capture(&visit.call, id, 1).await
    {
        (panes, _) = panes_of(&page, &capture);
    }
    let template = PlayPage {
        page,
        options,
        input,
        message,
        reasoning: played.reasoning,
        failed: played.failed,
        outcome: played.outcome,
        panes,
    };
    render(&template, status)
}

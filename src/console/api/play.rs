//! `/play`.

use std::convert::Infallible;

use axum::Json;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde::Deserialize;

use super::Body;
use crate::console::actor::ConsoleCall;
use crate::console::operations::play::{self, PlayInput};
use crate::console::refusal::Refusal;
use crate::console::views::PlayOptionsView;

#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PlayBody {
    /// The id of one of one's own keys.
    key: String,
    model: String,
    /// The format of the client: `chat`, `responses`, `messages` or `native`.
    format: String,
    #[serde(default)]
    system: String,
    /// The texts of the conversation in turns; the first and the last are one's own.
    turns: Vec<String>,
    /// The longest answer; absent: 1024.
    max_tokens: Option<u64>,
}

/// What one can play with.
#[cfg_attr(test, utoipa::path(get, path = "/play", tag = "play", responses((status = 200, body = PlayOptionsView))))]
pub async fn list_options(call: ConsoleCall) -> Result<Json<PlayOptionsView>, Refusal> {
    play::list_options(&call).await.map(Json)
}

/// Sends a message to a model by the gateway's own listener. The response is a stream of events, of which the last is `done`.
#[cfg_attr(test, utoipa::path(post, path = "/play", tag = "play", request_body = PlayBody, responses((status = 200, body = crate::console::views::PlayEventView, content_type = "text/event-stream"), (status = 400, body = super::ApiRefusal), (status = 404, body = super::ApiRefusal))))]
pub async fn play(call: ConsoleCall, Body(body): Body<PlayBody>) -> Result<Response, Refusal> {
    let input = PlayInput {
        key: body.key,
        model: body.model,
        format: body.format,
        system: body.system,
        turns: body.turns,
        max_tokens: body.max_tokens,
    };
    let answer = play::play(&call, &input).await?;
    let events = stream::unfold(answer, |mut answer| async move {
        let view = answer.next().await?;
        let event = Event::default().json_data(&view).ok()?;
        Some((Ok::<_, Infallible>(event), answer))
    });
    let events = Sse::new(Box::pin(events)).keep_alive(KeepAlive::default());
    Ok(events.into_response())
}

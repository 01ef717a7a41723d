//! `/keys/{id}/inspection` and `/inspections`.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use tokio::time::{Instant, sleep, timeout_at};

use crate::console::actor::ConsoleCall;
use crate::console::operations::inspect;
use crate::console::refusal::Refusal;
use crate::console::views::{CaptureView, InspectionView};

/// How long a stream lasts; then the client comes again, and with it the question whether it may.
const STREAM_TIME: Duration = Duration::from_secs(60);
/// How soon one event of it may follow another.
const EVENT_INTERVAL: Duration = Duration::from_millis(200);

/// Starts an inspection: the next 20 requests of the key within 15 minutes are captured in the memory of this gateway. One
/// that is running goes on.
#[cfg_attr(test, utoipa::path(post, path = "/keys/{id}/inspection", tag = "inspections", params(("id" = String, Path)), responses((status = 201, body = InspectionView), (status = 403, body = super::ApiRefusal), (status = 404, body = super::ApiRefusal))))]
pub async fn start_inspection(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<InspectionView>), Refusal> {
    let started = inspect::start_inspection(&call, &id).await?;
    Ok((StatusCode::CREATED, Json(started)))
}

/// Ends the inspection of a key.
#[cfg_attr(test, utoipa::path(delete, path = "/keys/{id}/inspection", tag = "inspections", params(("id" = String, Path)), responses((status = 204), (status = 404, body = super::ApiRefusal))))]
pub async fn end_inspection(
    call: ConsoleCall,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    inspect::end_inspection(&call, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// An inspection; with `Accept: text/event-stream` an `inspection` event for every change, until it has ended or for a
/// minute.
#[cfg_attr(test, utoipa::path(get, path = "/inspections/{id}", tag = "inspections", params(("id" = String, Path)), responses((status = 200, body = InspectionView), (status = 404, body = super::ApiRefusal))))]
pub async fn get_inspection(
    call: ConsoleCall,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let first = inspect::get_inspection(&call, &id).await?;
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/event-stream")) {
        return Ok(Json(first).into_response());
    }
    let changes = inspect::watch_inspection(&call, &id).await?;
    let end = Instant::now() + STREAM_TIME;
    let next = Some((changes, Some(first)));
    let events = stream::unfold((call, id, next), move |(call, id, next)| async move {
        let (mut changes, first) = next?;
        let view = match first {
            Some(view) => view,
            None => {
                sleep(EVENT_INTERVAL).await;
                timeout_at(end, changes.changed()).await.ok()?.ok()?;
                inspect::get_inspection(&call, &id).await.ok()?
            }
        };
        let is_final = view.is_final();
        let name = if is_final { "end" } else { "inspection" };
        let event = Event::default().event(name).json_data(&view).ok()?;
        let next = (!is_final).then_some((changes, None));
        Some((Ok::<_, Infallible>(event), (call, id, next)))
    });
    let events = Sse::new(events).keep_alive(KeepAlive::default());
    Ok(events.into_response())
}

/// One request of an inspection, with all that was captured of it.
#[cfg_attr(test, utoipa::path(get, path = "/inspections/{id}/requests/{number}", tag = "inspections", params(("id" = String, Path), ("number" = u32, Path)), responses((status = 200, body = CaptureView), (status = 404, body = super::ApiRefusal))))]
pub async fn get_capture(
    call: ConsoleCall,
    Path((id, number)): Path<(String, u32)>,
) -> Result<Json<CaptureView>, Refusal> {
    inspect::get_capture(&call, &id, number).await.map(Json)
}

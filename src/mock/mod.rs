//! A model backend that is none: all four formats and images on one port, steered by words in the prompt.

mod answer;
mod counters;
mod deliver;
mod images;
mod lists;
mod proofs;
mod received;
mod reply;
mod schema;
mod script;
mod signals;
mod stream;
mod words;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use axum::serve::ListenerExt as _;
use http::{HeaderMap, StatusCode, Uri, header};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::formats::{Framing, Operation};
use crate::model::{ApiError, ApiErrorKind, Format};
use deliver::deliver;
use received::Received;
use reply::{Entry, JSON, Reply};
use script::Delivery;
use signals::Stage;

/// Every word, path and signal, for those who steer the mock.
pub const HELP: &str = include_str!("help.txt");

const LARGEST_BODY: usize = 256 * 1024 * 1024;
/// Streams that wait for a signal would otherwise keep a closing mock open for ever.
const LONGEST_CLOSING: Duration = Duration::from_secs(5);

/// Serves HTTP/1.1 and HTTP/2 without TLS until told to stop; requests in flight may finish.
pub async fn serve(
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let closing = Arc::new(Notify::new());
    let told = Arc::clone(&closing);
    let listener = listener.tap_io(|connection| {
        // Without it events would wait for each other; if it fails the connection is broken anyway.
        let _ = connection.set_nodelay(true);
    });
    let serving = axum::serve(listener, router()).with_graceful_shutdown(async move {
        shutdown.await;
        told.notify_one();
    });
    tokio::select! {
        outcome = serving => outcome,
        () = async {
            closing.notified().await;
            tokio::time::sleep(LONGEST_CLOSING).await;
        } => Ok(()),
    }
}

pub fn router() -> Router {
    let generate = |format| conversation(format, Operation::Generate);
    let count = |format| conversation(format, Operation::CountTokens);
    Router::new()
        .route("/v1/chat/completions", generate(Format::Chat))
        .route("/v1/messages", generate(Format::Messages))
        .route("/v1/messages/count_tokens", count(Format::Messages))
        .route("/v1/responses", generate(Format::Responses))
        .route("/v1/responses/input_tokens", count(Format::Responses))
        .route("/v1beta/models/{*call}", post(native).get(model))
        .route("/v1/models/{*call}", post(native).get(model))
        .route("/v1/models", get(models))
        .route("/v1beta/models", get(models))
        .route("/v1/images/generations", post(paint))
        .route("/v1/images/edits", post(paint))
        .route("/mock/files/{name}", get(file))
        .route("/mock/signal/{name}", post(signal))
        .route("/mock/seen/{name}", get(seen))
        .route("/mock/stats", get(stats))
        .fallback(unknown)
        .with_state(Arc::new(Stage::default()))
}

type Shared = State<Arc<Stage>>;

fn conversation(format: Format, operation: Operation) -> MethodRouter<Arc<Stage>> {
    post(async move |State(stage): Shared, request: Request| {
        let entry = Entry {
            format,
            operation,
            path_model: None,
        };
        converse(&stage, entry, request).await
    })
}

async fn native(State(stage): Shared, Path(call): Path<String>, request: Request) -> Response {
    match read_call(&call, request.uri()) {
        Some(entry) => converse(&stage, entry, request).await,
        None => unknown(request.uri().clone()).await,
    }
}

/// `acme/demo:streamGenerateContent`
fn read_call(call: &str, uri: &Uri) -> Option<Entry> {
    let (model, verb) = call.rsplit_once(':')?;
    let operation = match verb {
        "generateContent" => Operation::Generate,
        "streamGenerateContent" => Operation::Stream(framing(uri)),
        "countTokens" => Operation::CountTokens,
        _ => return None,
    };
    Some(Entry {
        format: Format::Native,
        operation,
        path_model: Some(model.to_owned()),
    })
}

fn framing(uri: &Uri) -> Framing {
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut pairs = url::form_urlencoded::parse(query);
    if pairs.any(|(key, value)| key == "alt" && value == "sse") {
        Framing::Sse
    } else {
        Framing::Array
    }
}

async fn converse(stage: &Stage, entry: Entry, request: Request) -> Response {
    let format = entry.format;
    let make = |received: &Received| reply::converse(&entry, received);
    respond(stage, format, request, make).await
}

async fn paint(State(stage): Shared, request: Request) -> Response {
    respond(&stage, Format::Images, request, reply::paint).await
}

/// The reply is complete before anything is awaited again, so the request's memory is free while it travels.
async fn respond(
    stage: &Stage,
    format: Format,
    request: Request,
    make: impl Fn(&Received) -> (Reply, Delivery),
) -> Response {
    let visit = stage.enter();
    let (head, body) = request.into_parts();
    let (reply, delivery) = match to_bytes(body, LARGEST_BODY).await {
        Ok(body) => make(&Received { head, body }),
        Err(error) => {
            let message = format!("the body cannot be read or is larger than 256 MiB: {error}");
            let api_error = ApiError::new(ApiErrorKind::TooLarge, message);
            (
                Reply::api_error(format, &api_error, "mock"),
                Delivery::default(),
            )
        }
    };
    deliver(stage, reply, delivery, visit).await
}

async fn models(uri: Uri, headers: HeaderMap) -> Response {
    json(&lists::models(lists::format_of_list(uri.path(), &headers)))
}

async fn model(Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    let format = lists::format_of_list(uri.path(), &headers);
    json(&lists::entry(format, &id))
}

async fn signal(State(stage): Shared, Path(name): Path<String>) -> StatusCode {
    stage.signal(&name).add_permits(1);
    StatusCode::NO_CONTENT
}

/// The one image there is; one called `gone.png` is not there any more.
async fn file(Path(name): Path<String>) -> Response {
    match name.as_str() {
        "gone.png" => StatusCode::NOT_FOUND.into_response(),
        _ => ([(header::CONTENT_TYPE, "image/png")], images::file()).into_response(),
    }
}

async fn seen(State(stage): Shared, Path(name): Path<String>) -> Response {
    json(&stage.seen(&name))
}

async fn stats(State(stage): Shared) -> Response {
    json(&stage.totals())
}

async fn unknown(uri: Uri) -> Response {
    let native = uri.path().starts_with("/v1beta") || uri.path().starts_with("/v1/models/");
    let format = match uri.path() {
        _ if native => Format::Native,
        path if path.starts_with("/v1/messages") => Format::Messages,
        _ => Format::Chat,
    };
    let message = format!("the mock has no {}", uri.path());
    let mut api_error = ApiError::new(ApiErrorKind::NotFound, message);
    api_error.code = Some("unknown_path".to_owned());
    let (status, body) = format.codec().encode_error(&api_error, "mock");
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_FOUND);
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}

fn json(value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("numbers and strings always serialise");
    ([(header::CONTENT_TYPE, JSON)], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_calls_name_model_and_verb() {
        let entry = |call, uri| {
            let entry = read_call(call, &Uri::from_static(uri))?;
            Some((entry.path_model?, entry.operation))
        };
        let sse = "/x?key=1&alt=sse";
        assert_eq!(
            entry("a/b:1:streamGenerateContent", sse),
            Some(("a/b:1".to_owned(), Operation::Stream(Framing::Sse)))
        );
        assert_eq!(
            entry("demo:streamGenerateContent", "/x"),
            Some(("demo".to_owned(), Operation::Stream(Framing::Array)))
        );
        assert_eq!(entry("demo:sing", "/x"), None);
        assert_eq!(entry("demo", "/x"), None);
    }

    #[test]
    fn the_help_names_every_path() {
        for path in [
            "/v1/chat/completions",
            "/mock/signal/",
            "/mock/seen/",
            "/mock/stats",
        ] {
            assert!(HELP.contains(path), "{path}");
        }
    }
}

//! A mock backend: all four formats and images on one port, controlled by directives in the prompt.

mod audio;
mod bedrock;
mod body_hash;
mod cloud_embeddings;
mod cloud_hosts;
mod cloud_rules;
mod content;
mod count_tokens;
mod delivery;
mod directives;
mod embeddings;
mod endpoint;
mod endpoints;
mod field_rules;
mod images;
mod model_list;
mod plan;
mod provider_hosts;
mod request;
mod response;
mod sample_image;
mod schema_example;
mod signatures;
mod state;
mod stream;
mod token_endpoints;

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

use crate::formats::{EmbedMethod, Framing, Operation, PassthroughEndpoint};
use crate::model::{ApiError, ApiErrorKind, Format};
use bedrock::BedrockOperation;
use delivery::deliver;
use endpoint::MockEndpoint;
use plan::DeliveryPlan;
use request::MockRequest;
use response::{JSON, MockResponse};
use state::MockState;

/// The help text: every directive, path and signal.
pub const HELP: &str = include_str!("help.txt");

const MAX_BODY_BYTES: usize = 256 * 1024 * 1024;
/// Streams that wait for a signal would otherwise keep a mock that shuts down open for ever.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves HTTP/1.1 and HTTP/2 without TLS until shutdown; requests in flight may finish.
pub async fn serve(
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let shutting_down = Arc::new(Notify::new());
    let notify = Arc::clone(&shutting_down);
    let listener = listener.tap_io(|connection| {
        // Without it events would be delayed; if it fails the connection is broken anyway.
        let _ = connection.set_nodelay(true);
    });
    let serving = axum::serve(listener, router()).with_graceful_shutdown(async move {
        shutdown.await;
        notify.notify_one();
    });
    tokio::select! {
        outcome = serving => outcome,
        () = async {
            shutting_down.notified().await;
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        } => Ok(()),
    }
}

/// Makes the routes of the mock.
pub fn router() -> Router {
    let generation = |format| conversation(format, Operation::Generate);
    let count = |format| conversation(format, Operation::CountTokens);
    Router::new()
        .route("/v1/chat/completions", generation(Format::Chat))
        .route("/v1/messages", generation(Format::Messages))
        .route("/v1/messages/count_tokens", count(Format::Messages))
        .route("/v1/responses", generation(Format::Responses))
        .route("/v1/responses/input_tokens", count(Format::Responses))
        .route("/v1beta/models/{*call}", post(native).get(model))
        .route("/v1/models/{*call}", post(native).get(model))
        .route("/v1/models", get(models))
        .route("/v1beta/models", get(models))
        .route(
            "/v1/embeddings",
            conversation(Format::Chat, Operation::Embed(EmbedMethod::Batch)),
        )
        .route(
            "/v1/completions",
            passthrough(PassthroughEndpoint::Completions),
        )
        .route(
            "/v1/moderations",
            passthrough(PassthroughEndpoint::Moderations),
        )
        .route("/v1/rerank", passthrough(PassthroughEndpoint::Rerank))
        .route("/v1/audio/speech", passthrough(PassthroughEndpoint::Speech))
        .route(
            "/v1/audio/transcriptions",
            passthrough(PassthroughEndpoint::Transcriptions),
        )
        .route(
            "/v1/audio/translations",
            passthrough(PassthroughEndpoint::Translations),
        )
        .route("/v1/images/generations", post(generate_images))
        .route("/v1/images/edits", post(generate_images))
        .route(
            "/model/{model}/invoke",
            on_bedrock(BedrockOperation::Invoke),
        )
        .route(
            "/model/{model}/invoke-with-response-stream",
            on_bedrock(BedrockOperation::InvokeWithResponseStream),
        )
        .route(
            "/model/{model}/count-tokens",
            on_bedrock(BedrockOperation::CountTokens),
        )
        .route("/mock/files/{name}", get(file))
        .route("/mock/signal/{name}", post(signal))
        .route("/mock/seen/{name}", get(seen))
        .route("/mock/stats", get(stats))
        .merge(cloud_routes())
        .merge(token_endpoints::routes())
        .fallback(at_provider)
        .with_state(Arc::new(MockState::default()))
}

/// The paths of clouds: Azure, Microsoft Foundry, Vertex AI and AWS Bedrock take the requests of known formats at others.
fn cloud_routes() -> Router<Arc<MockState>> {
    let generation = |format| conversation(format, Operation::Generate);
    let count = conversation(Format::Messages, Operation::CountTokens);
    let mut router = Router::new()
        .route("/openai/v1/chat/completions", generation(Format::Chat))
        .route("/openai/v1/responses", generation(Format::Responses))
        .route("/openai/v1/images/generations", post(generate_images))
        .route("/openai/v1/images/edits", post(generate_images))
        .route("/anthropic/v1/messages", generation(Format::Messages))
        .route("/anthropic/v1/messages/count_tokens", count);
    let deployment = "/openai/deployments/{deployment}";
    let chat = format!("{deployment}/chat/completions");
    let embed = conversation(Format::Chat, Operation::Embed(EmbedMethod::Batch));
    router = router
        .route(&chat, generation(Format::Chat))
        .route(&format!("{deployment}/embeddings"), embed);
    for images in ["generations", "edits"] {
        let path = format!("{deployment}/images/{images}");
        router = router.route(&path, post(generate_images));
    }
    for endpoint in PassthroughEndpoint::ALL {
        for base in [deployment, "/openai/v1"] {
            let path = format!("{base}{}", endpoint.path());
            router = router.route(&path, passthrough(endpoint));
        }
    }
    let embed = conversation(Format::Chat, Operation::Embed(EmbedMethod::Batch));
    router = router.route("/openai/v1/embeddings", embed);
    for version in ["v1", "v1beta1"] {
        let location = format!("/{version}/projects/{{project}}/locations/{{location}}");
        let chat = format!("{location}/endpoints/openapi/chat/completions");
        let models = format!("{location}/publishers/{{publisher}}/models/{{*call}}");
        let express = format!("/{version}/publishers/google/models/{{*call}}");
        router = router
            .route(&chat, generation(Format::Chat))
            .route(&models, post(vertex))
            .route(&express, post(native));
    }
    router
}

type SharedState = State<Arc<MockState>>;

async fn vertex(
    state: SharedState,
    Path((_, _, publisher, call)): Path<(String, String, String, String)>,
    request: Request,
) -> Response {
    if publisher == "google" {
        let Some(model) = call.strip_suffix(":predict") else {
            return native(state, Path(call), request).await;
        };
        let make = |received: &MockRequest| cloud_embeddings::predict(model, received);
        return respond(&state, Format::Native, request, make).await;
    }
    let Some(operation) = cloud_hosts::operation(&call) else {
        return unknown(request.uri().clone()).await;
    };
    let endpoint = MockEndpoint {
        format: Format::Messages,
        operation,
        path_model: None,
    };
    let make = |received: &MockRequest| {
        let plain = MockRequest {
            head: received.head.clone(),
            body: cloud_hosts::plain_body(&call, operation, &received.body),
            sent: Some(received.body.clone()),
        };
        response::generate(&endpoint, &plain)
    };
    respond(&state, Format::Messages, request, make).await
}

/// Paths that only one of the known hosts has, such as `/inference/v1/chat/completions`.
async fn at_provider(State(state): SharedState, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let found = provider_hosts::endpoint(&head);
    let request = Request::from_parts(head, body);
    let Some((format, is_count)) = found else {
        return unknown(request.uri().clone()).await;
    };
    let endpoint = MockEndpoint {
        format,
        operation: match is_count {
            true => Operation::CountTokens,
            false => Operation::Generate,
        },
        path_model: None,
    };
    generate(&state, endpoint, request).await
}

fn conversation(format: Format, operation: Operation) -> MethodRouter<Arc<MockState>> {
    post(async move |State(state): SharedState, request: Request| {
        let endpoint = MockEndpoint {
            format,
            operation,
            path_model: None,
        };
        generate(&state, endpoint, request).await
    })
}

/// The route of an operation of Bedrock, whose path has the model as one segment.
fn on_bedrock(operation: BedrockOperation) -> MethodRouter<Arc<MockState>> {
    post(
        async move |State(state): SharedState, Path(model): Path<String>, request: Request| {
            let make = |received: &MockRequest| bedrock::generate(operation, &model, received);
            respond(&state, Format::Messages, request, make).await
        },
    )
}

fn passthrough(endpoint: PassthroughEndpoint) -> MethodRouter<Arc<MockState>> {
    post(async move |State(state): SharedState, request: Request| {
        let make = |received: &MockRequest| endpoints::respond(endpoint, received);
        respond(&state, Format::Chat, request, make).await
    })
}

async fn native(State(state): SharedState, Path(call): Path<String>, request: Request) -> Response {
    match parse_native_call(&call, request.uri()) {
        Some(endpoint) => generate(&state, endpoint, request).await,
        None => unknown(request.uri().clone()).await,
    }
}

/// Parses the end of a native path, like `acme/demo:streamGenerateContent`.
fn parse_native_call(call: &str, uri: &Uri) -> Option<MockEndpoint> {
    let (model, verb) = call.rsplit_once(':')?;
    let operation = match verb {
        "generateContent" => Operation::Generate,
        "streamGenerateContent" => Operation::Stream(framing(uri)),
        "countTokens" => Operation::CountTokens,
        "embedContent" => Operation::Embed(EmbedMethod::Single),
        "batchEmbedContents" => Operation::Embed(EmbedMethod::Batch),
        _ => return None,
    };
    Some(MockEndpoint {
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

async fn generate(state: &MockState, endpoint: MockEndpoint, request: Request) -> Response {
    let format = endpoint.format;
    let make = |received: &MockRequest| match endpoint.operation {
        Operation::Embed(_) => embeddings::embed(&endpoint, received),
        _ => response::generate(&endpoint, received),
    };
    respond(state, format, request, make).await
}

async fn generate_images(State(state): SharedState, request: Request) -> Response {
    respond(&state, Format::Images, request, response::generate_images).await
}

/// Makes and sends a response. It is complete before the next await, so that the memory of the
/// request is free while it is sent.
async fn respond(
    state: &MockState,
    format: Format,
    request: Request,
    make: impl Fn(&MockRequest) -> (MockResponse, DeliveryPlan),
) -> Response {
    let guard = state.start_request();
    let (head, body) = request.into_parts();
    let (response, delivery) = match to_bytes(body, MAX_BODY_BYTES).await {
        Ok(body) => {
            let received = MockRequest {
                head,
                body,
                sent: None,
            };
            match provider_hosts::refusal(&received) {
                Some(api_error) => (
                    MockResponse::api_error(format, &api_error, "mock"),
                    DeliveryPlan::default(),
                ),
                None => make(&received),
            }
        }
        Err(error) => {
            let message = format!("the body cannot be read or is larger than 256 MiB: {error}");
            let api_error = ApiError::new(ApiErrorKind::TooLarge, message);
            (
                MockResponse::api_error(format, &api_error, "mock"),
                DeliveryPlan::default(),
            )
        }
    };
    deliver(state, response, delivery, guard).await
}

async fn models(uri: Uri, headers: HeaderMap) -> Response {
    json(&model_list::models(model_list::format_of_list(
        uri.path(),
        &headers,
    )))
}

async fn model(Path(id): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    let format = model_list::format_of_list(uri.path(), &headers);
    json(&model_list::model(format, &id))
}

async fn signal(State(state): SharedState, Path(name): Path<String>) -> StatusCode {
    state.signal(&name).add_permits(1);
    StatusCode::NO_CONTENT
}

/// Returns the image under every name but `gone.png`.
async fn file(Path(name): Path<String>) -> Response {
    match name.as_str() {
        "gone.png" => StatusCode::NOT_FOUND.into_response(),
        _ => (
            [(header::CONTENT_TYPE, "image/png")],
            sample_image::png_bytes(),
        )
            .into_response(),
    }
}

async fn seen(State(state): SharedState, Path(name): Path<String>) -> Response {
    json(&state.counts(&name))
}

async fn stats(State(state): SharedState) -> Response {
    json(&state.totals())
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
        let endpoint = |call, uri| {
            let endpoint = parse_native_call(call, &Uri::from_static(uri))?;
            Some((endpoint.path_model?, endpoint.operation))
        };
        let sse = "/x?key=1&alt=sse";
        assert_eq!(
            endpoint("a/b:1:streamGenerateContent", sse),
            Some(("a/b:1".to_owned(), Operation::Stream(Framing::Sse)))
        );
        assert_eq!(
            endpoint("demo:streamGenerateContent", "/x"),
            Some(("demo".to_owned(), Operation::Stream(Framing::Array)))
        );
        assert_eq!(endpoint("demo:sing", "/x"), None);
        assert_eq!(endpoint("demo", "/x"), None);
    }

    #[test]
    fn no_path_is_routed_twice() {
        // A path with two routes is a panic.
        let _ = router();
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

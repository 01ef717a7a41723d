//! The format seen from outside: bodies in, bodies and events out.

mod count;
mod decoder;
mod grammar;
mod incoming;
mod outgoing;
mod reply;
mod request;
mod stream;
mod turns;

use serde_json::Value;

use crate::formats::{Codec as _, Framing, RequestHead, ResponseOptions};
use crate::model::{
    Action, ApiError, Arguments, Call, Choice, FieldLocation, Finish, Losses, Part, PartKind,
    Request, Response, ToolKind, TranslationState, Usage,
};

fn decode(body: &str) -> (Result<Request<'_>, ApiError>, Vec<(Action, String)>) {
    let mut losses = Losses::default();
    let request =
        super::Messages.decode_request(&RequestHead::default(), body.as_bytes(), &mut losses);
    let losses = losses.0.into_iter().map(|lost| match lost.location {
        FieldLocation::Path(path) => (lost.action, path.into_owned()),
        place => panic!("not a path: {place:?}"),
    });
    (request, losses.collect())
}

/// A request that must be read without any loss.
fn read(body: &str) -> Request<'_> {
    let (request, losses) = decode(body);
    assert_eq!(losses, []);
    request.expect("a good request")
}

/// The field that a request is refused for.
fn refused(body: &str) -> String {
    let api_error = decode(body).0.expect_err("a bad request");
    assert_eq!(api_error.status, 400);
    api_error.param.clone().unwrap_or_default()
}

/// Fields beside the least that every request must have.
fn with(fields: &str) -> String {
    format!(
        r#"{{"model":"m-1","max_tokens":9,"messages":[{{"role":"user","content":"Hi"}}],{fields}}}"#
    )
}

fn dropped(path: &str) -> (Action, String) {
    (Action::Dropped, path.to_owned())
}

fn approximated(path: &str) -> (Action, String) {
    (Action::Approximated, path.to_owned())
}

fn asked() -> ResponseOptions {
    ResponseOptions {
        model: "asked-for".to_owned(),
        stream: false,
        framing: Framing::Sse,
        include_usage: false,
        request_id: "req-7".to_owned(),
        at: 1_760_000_000,
        memory: TranslationState::default(),
    }
}

fn text(text: &'static str) -> PartKind<'static> {
    PartKind::Text(text.into())
}

fn call(id: Option<&'static str>, arguments: &'static str) -> Call<'static> {
    Call {
        id: id.map(Into::into),
        name: "get_weather".into(),
        arguments: Arguments::Text(arguments.into()),
        signature: None,
        kind: ToolKind::Function,
    }
}

fn response(parts: Vec<PartKind<'static>>, finish: Finish<'static>) -> Response<'static> {
    let parts = parts.into_iter().map(|kind| Part { kind, at: None });
    Response {
        id: "chatcmpl-1".into(),
        model: "upstream-model".into(),
        created: 1_760_000_000,
        choices: vec![Choice {
            parts: parts.collect(),
            citations: Vec::new(),
            logprobs: Vec::new(),
            finish,
        }],
        usage: Some(Usage {
            input: 100,
            cached: 80,
            cache_written: 15,
            output: 30,
            thinking: 20,
            ..Usage::default()
        }),
    }
}

fn encode(response: &Response<'_>) -> Value {
    let bytes =
        super::Messages.encode_response(response, &asked(), &mut crate::model::Losses::default());
    serde_json::from_slice(&bytes).expect("JSON")
}

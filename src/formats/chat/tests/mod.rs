//! The chat format as its clients see it.

mod decoder;
mod incoming;
mod messages;
mod outgoing;
mod reply;
mod settings;
mod stream;

use serde_json::{Value, json};

use super::request;
use crate::formats::{Framing, ResponseOptions};
use crate::model::{
    Action, ApiError, Arguments, Call, Choice, Citation, FieldLocation, Finish, Issuer, Logprob,
    Losses, Media, Part, PartKind, Request, Response, Signature, Source, ToolKind,
    TranslationState, Usage,
};

/// What `decode` makes of a body, and the paths that it reports as dropped.
fn decode(body: &Value, check: impl FnOnce(Request<'_>, Vec<String>)) {
    let bytes = body.to_string();
    let mut losses = Losses::default();
    let request = request::decode(bytes.as_bytes(), &mut losses)
        .unwrap_or_else(|api_error| panic!("{body}: {api_error:?}"));
    let paths = losses.0.iter().map(|lost| match &lost.location {
        FieldLocation::Path(path) if lost.action == Action::Dropped => path.to_string(),
        other => panic!("{other:?}"),
    });
    check(request, paths.collect());
}

fn refuse(body: &Value) -> ApiError {
    let bytes = body.to_string();
    match request::decode(bytes.as_bytes(), &mut Losses::default()) {
        Ok(request) => panic!("{body} was taken: {request:?}"),
        Err(api_error) => {
            assert_eq!(api_error.status, 400);
            api_error
        }
    }
}

/// A request with these settings beside one short message.
fn with(settings: Value) -> Value {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let Value::Object(settings) = settings else {
        panic!("settings are an object");
    };
    let map = body.as_object_mut().expect("an object");
    map.extend(settings);
    body
}

fn asked() -> ResponseOptions {
    ResponseOptions {
        model: "asked".to_owned(),
        stream: true,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req-9".to_owned(),
        at: 1_760_000_000,
        memory: TranslationState::default(),
    }
}

fn choice(parts: Vec<PartKind<'static>>, finish: Finish<'static>) -> Choice<'static> {
    let part = |kind| Part { kind, at: None };
    Choice {
        parts: parts.into_iter().map(part).collect(),
        citations: Vec::new(),
        logprobs: Vec::new(),
        finish,
    }
}

fn response(choices: Vec<Choice<'static>>) -> Response<'static> {
    Response {
        id: "msg_1".into(),
        model: "upstream".into(),
        created: 0,
        choices,
        usage: Some(Usage {
            input: 10,
            cached: 4,
            cache_written: 2,
            output: 7,
            thinking: 3,
            ..Usage::default()
        }),
    }
}

fn text(text: &'static str) -> PartKind<'static> {
    PartKind::Text(text.into())
}

fn signature(issuer: Issuer) -> Signature<'static> {
    Signature {
        issuer,
        data: "raw".into(),
    }
}

fn call(id: Option<&'static str>, arguments: &'static str) -> PartKind<'static> {
    PartKind::Call(Call {
        id: id.map(Into::into),
        name: "look".into(),
        arguments: Arguments::Text(arguments.into()),
        signature: None,
        kind: ToolKind::Function,
    })
}

fn picture() -> PartKind<'static> {
    PartKind::Media(Media {
        mime: "image/png".into(),
        source: Source::Base64("AAAA".into()),
        name: None,
        detail: None,
    })
}

/// One reply with everything a reply may hold.
fn full_response() -> Response<'static> {
    let mut first = choice(
        vec![
            PartKind::Reasoning {
                text: "Hm. ".into(),
                signature: Some(signature(Issuer::Thinking)),
            },
            PartKind::Reasoning {
                text: "Aha.".into(),
                signature: None,
            },
            PartKind::Reasoning {
                text: "".into(),
                signature: Some(signature(Issuer::Redacted)),
            },
            text("One. "),
            picture(),
            call(Some("call_a"), r#"{"x":1}"#),
            text("Two."),
            PartKind::Call(Call {
                id: None,
                name: "shout".into(),
                arguments: Arguments::Text("free\ntext".into()),
                signature: Some(signature(Issuer::Native)),
                kind: ToolKind::Custom,
            }),
            call(None, ""),
        ],
        Finish::Tools,
    );
    first.citations.push(Citation {
        url: "https://a.example".into(),
        title: None,
        start: 0,
        end: 4,
    });
    for token in ["One", ". "] {
        first.logprobs.push(Logprob {
            token: token.into(),
            logprob: -0.5,
            top: vec![("Won".into(), -1.5)],
        });
    }
    let second = choice(
        vec![PartKind::Refusal("No.".into())],
        Finish::Filtered(Some("policy".into())),
    );
    let third = choice(Vec::new(), Finish::Filtered(Some("policy".into())));
    response(vec![first, second, third])
}

//! Tests of the chat format, as its clients and upstreams see it.

mod parts;
mod response;
mod settings;
mod stream_decode;
mod stream_encode;
mod tools;
mod turns;

use serde_json::{Value, json};

use super::Chat;
use crate::formats::{
    Capabilities, Framing, RequestCodec, RequestHead, ResponseOptions, UpstreamTarget,
};
use crate::model::{
    Action, ApiError, Arguments, Call, Choice, Citation, FieldLocation, Finish, Format, Issuer,
    Logprob, Losses, Media, Part, PartKind, Request, Response, Setting, Signature, Source,
    ToolKind, TranslationState, Turn, Usage,
};

/// Decodes a request and collects the paths that are reported as dropped.
fn decode(body: &Value, check: impl FnOnce(Request<'_>, Vec<String>)) {
    let bytes = body.to_string();
    let mut losses = Losses::default();
    let request = Chat
        .decode_request(&RequestHead::default(), bytes.as_bytes(), &mut losses)
        .unwrap_or_else(|api_error| panic!("{body}: {api_error:?}"));
    let paths = losses.0.iter().map(|loss| match &loss.location {
        FieldLocation::Path(path) if loss.action == Action::Dropped => path.to_string(),
        other => panic!("{other:?}"),
    });
    check(request, paths.collect());
}

/// The error of a request that must not be decoded.
fn rejected(body: &Value) -> ApiError {
    let bytes = body.to_string();
    match Chat.decode_request(
        &RequestHead::default(),
        bytes.as_bytes(),
        &mut Losses::default(),
    ) {
        Ok(request) => panic!("{body} was taken: {request:?}"),
        Err(api_error) => {
            assert_eq!(api_error.status, 400);
            api_error
        }
    }
}

/// Decodes messages and collects the paths that are reported as dropped.
fn decode_turns(messages: Value, check: impl FnOnce(Vec<Turn<'_>>, Vec<String>)) {
    let body = json!({"model": "m", "messages": messages});
    decode(&body, |request, dropped| check(request.turns, dropped));
}

/// The path of a setting that must not be decoded.
fn rejected_setting(settings: Value) -> String {
    rejected(&with(settings)).param.clone().expect("a param")
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

/// Encodes a request of another format for an upstream with these capabilities, and collects the losses.
fn translate(
    from: Format,
    body: &Value,
    capabilities: &[(&str, &str)],
) -> Result<(Value, Vec<(Action, FieldLocation)>), ApiError> {
    let mut known = Capabilities::default();
    for (name, value) in capabilities {
        known.set(name, value).expect("a capability");
    }
    let target = UpstreamTarget {
        model: "m",
        stream: false,
        max_output_tokens: None,
        capabilities: &known,
        brand: "google",
        images_only: false,
    };
    let bytes = serde_json::to_vec(body).expect("JSON");
    let mut losses = Losses::default();
    let head = RequestHead::default();
    let sent = crate::translate::request(from, Format::Chat, &head, &bytes, &target, &mut losses)?;
    let encoded_body = serde_json::from_slice(&sent.body).expect("JSON");
    let losses = losses
        .0
        .into_iter()
        .map(|loss| (loss.action, loss.location));
    Ok((encoded_body, losses.collect()))
}

fn encoded(from: Format, body: Value) -> (Value, Vec<(Action, FieldLocation)>) {
    translate(from, &body, &[]).unwrap_or_else(|api_error| panic!("{body}: {api_error:?}"))
}

fn rejected_location(from: Format, body: Value) -> FieldLocation {
    let api_error = translate(from, &body, &[]).expect_err("a refusal");
    assert_eq!(api_error.status, 400);
    api_error.location.clone().expect("a location")
}

fn messages(turns: Value) -> Value {
    json!({"model": "m", "max_tokens": 64, "messages": turns})
}

fn native(parts: Value) -> Value {
    json!({"contents": [{"role": "user", "parts": parts}]})
}

fn responses(input: Value) -> Value {
    json!({"model": "m", "input": input})
}

fn part(turn: u32, part: u32) -> FieldLocation {
    FieldLocation::Part {
        turn: Some(turn),
        part: Some(part),
    }
}

const fn setting(action: Action, setting: Setting) -> (Action, FieldLocation) {
    (action, FieldLocation::Setting(setting))
}

fn options() -> ResponseOptions {
    ResponseOptions {
        model: "options".to_owned(),
        stream: true,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req-9".to_owned(),
        created_at: 1_760_000_000,
        translation_state: TranslationState::default(),
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

fn image() -> PartKind<'static> {
    PartKind::Media(Media {
        mime: "image/png".into(),
        source: Source::Base64("AAAA".into()),
        name: None,
        detail: None,
    })
}

/// A response with everything that a response may hold.
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
            image(),
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

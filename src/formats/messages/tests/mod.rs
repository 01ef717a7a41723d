//! Tests of the codec: bodies in, bodies and events out.

mod bedrock;
mod count_tokens;
mod media;
mod request;
mod response;
mod stream_decoder;
mod stream_encoder;
mod stream_grammar;
mod thinking;
mod tools;
mod turns;

use serde_json::{Value, json};

use crate::formats::{
    Capabilities, Framing, RequestCodec as _, RequestHead, ResponseCodec as _, ResponseOptions,
    UpstreamTarget,
};
use crate::model::{
    Action, ApiError, Arguments, Call, Choice, FieldLocation, Finish, Format, Losses, Media, Part,
    PartKind, Request, Response, Source, ToolKind, TranslationState, Usage,
};
use crate::translate;

fn decode(body: &str) -> (Result<Request<'_>, ApiError>, Vec<(Action, String)>) {
    let mut losses = Losses::default();
    let request =
        super::Messages.decode_request(&RequestHead::default(), body.as_bytes(), &mut losses);
    let losses = losses.0.into_iter().map(|loss| match loss.location {
        FieldLocation::Path(path) => (loss.action, path.into_owned()),
        location => panic!("not a path: {location:?}"),
    });
    (request, losses.collect())
}

/// Decodes a request that must not lose anything.
fn decode_lossless(body: &str) -> Request<'_> {
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

fn options() -> ResponseOptions {
    ResponseOptions {
        model: "asked-for".to_owned(),
        stream: false,
        framing: Framing::Sse,
        include_usage: false,
        request_id: "req-7".to_owned(),
        created_at: 1_760_000_000,
        translation_state: TranslationState::default(),
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
        super::Messages.encode_response(response, &options(), &mut crate::model::Losses::default());
    serde_json::from_slice(&bytes).expect("JSON")
}

fn conversation(messages: &str) -> String {
    format!(r#"{{"model":"m-1","max_tokens":9,"messages":[{messages}]}}"#)
}

/// A request of one turn with these blocks.
fn user(blocks: &str) -> String {
    conversation(&format!(r#"{{"role":"user","content":[{blocks}]}}"#))
}

fn assistant(blocks: &str) -> String {
    conversation(&format!(r#"{{"role":"assistant","content":[{blocks}]}}"#))
}

fn only_part(body: &str) -> PartKind<'_> {
    let mut turns = decode_lossless(body).turns;
    assert_eq!(turns.len(), 1);
    let mut parts = turns.remove(0).parts;
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].at, Some(0));
    parts.remove(0).kind
}

fn media<'a>(mime: &'a str, source: Source<'a>, name: Option<&'a str>) -> PartKind<'a> {
    PartKind::Media(Media {
        mime: mime.into(),
        source,
        name: name.map(Into::into),
        detail: None,
    })
}

/// Translates a request of another format for an upstream of this one.
fn encode_from(
    from: Format,
    body: &Value,
    flags: &[(&str, &str)],
    limit: Option<u64>,
) -> Result<(Value, Vec<(Action, String)>), ApiError> {
    let mut capabilities = Capabilities::default();
    for (name, value) in flags {
        capabilities.set(name, value).expect("a flag");
    }
    let target = UpstreamTarget {
        model: "m-1",
        stream: false,
        max_output_tokens: limit,
        capabilities: &capabilities,
        brand: "vendor",
        images_only: false,
    };
    let mut losses = Losses::default();
    let body = body.to_string();
    let head = RequestHead {
        path_model: Some("m-1"),
        stream: false,
        text_only: false,
        ..RequestHead::default()
    };
    let request = translate::request(
        from,
        Format::Messages,
        &head,
        body.as_bytes(),
        &target,
        &mut losses,
    )?;
    let losses = losses.0.iter();
    let losses = losses.map(|loss| (loss.action, from.codec().path_of(&loss.location)));
    Ok((
        serde_json::from_slice(&request.body).expect("JSON"),
        losses.collect(),
    ))
}

/// A chat request with these fields beside the usual ones.
fn chat_request(fields: Value) -> Value {
    let mut body = json!({
        "model": "m", "max_tokens": 5000, "messages": [{"role": "user", "content": "Hi"}],
    });
    let all = body.as_object_mut().expect("an object");
    for (key, value) in fields.as_object().expect("an object") {
        all.insert(key.clone(), value.clone());
    }
    body
}

fn encode_chat(fields: Value, flags: &[(&str, &str)]) -> (Value, Vec<Action>) {
    let (body, losses) =
        encode_from(Format::Chat, &chat_request(fields), flags, None).expect("a good request");
    (body, losses.into_iter().map(|(action, _)| action).collect())
}

fn refused_status(from: Format, body: &Value, flags: &[(&str, &str)]) -> u16 {
    let api_error = encode_from(from, body, flags, None).expect_err("a bad request");
    api_error.status
}

fn assistant_call(id: &str, arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}]})
}

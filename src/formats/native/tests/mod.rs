//! Tests of the native format that are no translations: laws, and what only its own codec can show.

mod client_streams;
mod corners;
mod hidden_reasoning;
mod laws;
mod upstream;

use serde_json::Value;

use crate::formats::{
    Framing, RequestCodec as _, RequestHead, ResponseCodec as _, ResponseOptions,
};
use crate::model::{
    Action, ApiError, Arguments, Call, Choice, Citation, FieldLocation, Finish, Issuer, Logprob,
    Losses, Media, Part, PartKind, Request, Response, Signature, Source, ToolKind,
    TranslationState, Usage,
};

/// Decodes a request, with the paths of what it lost.
fn decode(body: &str) -> Result<(Request<'_>, Vec<(Action, String)>), ApiError> {
    let mut losses = Losses::default();
    let request =
        super::Native.decode_request(&RequestHead::default(), body.as_bytes(), &mut losses)?;
    let paths = losses.0.into_iter().map(|loss| match loss.location {
        FieldLocation::Path(path) => (loss.action, path.into_owned()),
        other => (loss.action, format!("{other:?}")),
    });
    Ok((request, paths.collect()))
}

fn options(framing: Framing) -> ResponseOptions {
    ResponseOptions {
        model: "requested-1".to_owned(),
        stream: true,
        framing,
        include_usage: false,
        request_id: "req-1".to_owned(),
        created_at: 1_760_000_000,
        translation_state: TranslationState::default(),
    }
}

fn part(kind: PartKind<'static>) -> Part<'static> {
    Part { kind, at: None }
}

fn text(text: &'static str) -> Part<'static> {
    part(PartKind::Text(text.into()))
}

fn signature(issuer: Issuer, data: &'static str) -> Signature<'static> {
    Signature {
        issuer,
        data: data.into(),
    }
}

fn call(name: &'static str, arguments: &'static str) -> Part<'static> {
    part(PartKind::Call(Call {
        id: Some("call_1".into()),
        name: name.into(),
        arguments: Arguments::Text(arguments.into()),
        signature: None,
        kind: ToolKind::Function,
    }))
}

fn choice(parts: Vec<Part<'static>>, finish: Finish<'static>) -> Choice<'static> {
    Choice {
        parts,
        citations: Vec::new(),
        logprobs: Vec::new(),
        finish,
    }
}

fn response(choices: Vec<Choice<'static>>) -> Response<'static> {
    Response {
        id: "chatcmpl-1".into(),
        model: "m-1".into(),
        created: 1_760_000_001,
        choices,
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

/// A response with all that a response can hold, in two choices.
fn rich() -> Response<'static> {
    let reasoning = PartKind::Reasoning {
        text: "Let me think.".into(),
        signature: Some(signature(Issuer::Thinking, "RXJVQkNrWUlB")),
    };
    let image = PartKind::Media(Media {
        mime: "image/png".into(),
        source: Source::Base64("aGk=".into()),
        name: None,
        detail: None,
    });
    let mut first = choice(
        vec![
            part(reasoning),
            text("Café open. Rome is hot."),
            call("get_weather", "{\"city\":\"Paris\"}"),
            part(image),
        ],
        Finish::Tools,
    );
    first.citations.push(Citation {
        url: "https://b.example/2".into(),
        title: Some("B".into()),
        start: 11,
        end: 23,
    });
    first.logprobs.push(Logprob {
        token: "Café".into(),
        logprob: -0.5,
        top: vec![("Café".into(), -0.5), ("Bar".into(), -1.5)],
    });
    let second = choice(
        vec![part(PartKind::Refusal("I cannot.".into()))],
        Finish::Filtered(Some("Policy.".into())),
    );
    response(vec![first, second])
}

fn encode(response: &Response<'_>) -> Value {
    let bytes = super::Native.encode_response(
        response,
        &options(Framing::Sse),
        &mut crate::model::Losses::default(),
    );
    serde_json::from_slice(&bytes).unwrap()
}

fn parts_of(response: &Value, candidate: usize) -> Value {
    response["candidates"][candidate]["content"]["parts"].clone()
}

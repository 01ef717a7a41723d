//! Tests of the messages format that are no translations: laws, and what only its own codec can show.

mod bedrock;
mod corners;
mod stream_grammar;
mod stream_laws;

use serde_json::Value;

use crate::formats::{Framing, ResponseCodec as _, ResponseOptions};
use crate::model::{
    Arguments, Call, Choice, Finish, Losses, Part, PartKind, Response, ToolKind, TranslationState,
    Usage,
};

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
    let bytes = super::Messages.encode_response(response, &options(), &mut Losses::default());
    serde_json::from_slice(&bytes).expect("JSON")
}

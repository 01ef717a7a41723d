//! Tests of the chat format that are no translations: laws, and what only its own codec can show.

mod corners;
mod laws;

use crate::formats::{Framing, ResponseOptions};
use crate::model::{
    Arguments, Call, Choice, Citation, Finish, Issuer, Logprob, Media, Part, PartKind, Response,
    Signature, Source, ToolKind, TranslationState, Usage,
};

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

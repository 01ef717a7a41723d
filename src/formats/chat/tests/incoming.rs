//! Whole replies of chat upstreams and of those who imitate them.

use serde_json::{Value, json};

use super::super::incoming;
use super::signature;
use crate::model::{
    Action, ApiError, ApiErrorKind, Arguments, Finish, Issuer, Losses, PartKind, Response, Source,
    Usage,
};

fn decoded(body: &Value, check: impl FnOnce(Response<'_>, Vec<Action>)) {
    let bytes = serde_json::to_vec(body).expect("JSON");
    let mut losses = Losses::default();
    let response = incoming::decode(&bytes, &mut losses)
        .unwrap_or_else(|api_error| panic!("{body}: {api_error:?}"));
    check(response, losses.0.iter().map(|lost| lost.action).collect());
}

fn failed(body: &Value) -> ApiError {
    let bytes = serde_json::to_vec(body).expect("JSON");
    incoming::decode(&bytes, &mut Losses::default()).expect_err("an error")
}

fn reply(message: Value, finish: Value) -> Value {
    json!({"id": "c", "model": "m", "created": 5.0,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
}

#[test]
fn what_is_there_beats_how_it_ended() {
    let call = json!([{"id": "", "function": {"name": "f", "arguments": {"a": 1}}}]);
    for (message, finish, meaning) in [
        (json!({"content": "A"}), json!("stop"), Finish::Stop),
        (json!({"content": "A"}), json!("eos"), Finish::Stop),
        (json!({"content": "A"}), json!(""), Finish::Stop),
        (json!({"content": "A"}), Value::Null, Finish::Stop),
        (
            json!({"content": "A", "function_call": {"name": "", "arguments": ""}}),
            json!(""),
            Finish::Stop,
        ),
        (
            json!({"content": "A"}),
            json!("model_length"),
            Finish::Length,
        ),
        (json!({"refusal": "No."}), json!("stop"), Finish::Refused),
        (json!({"tool_calls": call}), json!("stop"), Finish::Tools),
        (json!({"tool_calls": call}), Value::Null, Finish::Tools),
        (json!({"tool_calls": call}), json!("length"), Finish::Length),
        (
            json!({"content": null}),
            json!("content_filter"),
            Finish::Filtered(None),
        ),
        (
            json!({"function_call": {"name": "f"}}),
            json!("function_call"),
            Finish::Tools,
        ),
    ] {
        decoded(&reply(message, finish), |response, lost| {
            assert_eq!(response.choices[0].finish, meaning);
            assert_eq!((response.created, response.usage), (5, None));
            assert!(lost.is_empty());
        });
    }
    decoded(
        &reply(json!({"content": "A"}), json!("tired")),
        |response, lost| {
            assert_eq!(response.choices[0].finish, Finish::Stop);
            assert_eq!(lost, [Action::Approximated]);
        },
    );
}

#[test]
fn calls_in_careless_spellings() {
    let message = json!({"content": "", "tool_calls": [
        {"id": "", "function": {"name": "f", "arguments": {"a": 1, "b": 2}}},
        {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}},
        {"id": "c3", "index": 2, "function": {"name": "h"}},
    ]});
    decoded(&reply(message, json!("tool_calls")), |response, _| {
        let calls: Vec<_> = response.choices[0]
            .parts
            .iter()
            .map(|part| match &part.kind {
                PartKind::Call(call) => (call.id.as_deref(), call.arguments.to_text()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(calls[0], (None, r#"{"a":1,"b":2}"#.into()));
        assert_eq!(calls[1], (Some("c2"), "x".into()));
        assert_eq!(calls[2], (Some("c3"), "".into()));
    });
}

#[test]
fn thoughts_in_every_spelling() {
    let thought = |text: &'static str, signature| PartKind::Reasoning {
        text: text.into(),
        signature,
    };
    let wrapped = signature(Issuer::Native).wrap();
    for (message, kinds, losses) in [
        (
            json!({"reasoning": "T", "content": "A"}),
            vec![thought("T", None)],
            0,
        ),
        (
            json!({"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "T"}, {"type": "text", "text": "U"}]},
                {"type": "text", "text": "A"},
            ]}),
            vec![thought("TU", None)],
            0,
        ),
        (
            json!({"content": "A", "reasoning": "T", "reasoning_details": [
                {"type": "reasoning.text", "text": "T", "signature": "EqQB", "index": 0}]}),
            vec![thought("T", None)],
            1,
        ),
        (
            json!({"content": "A", "reasoning_content": "T", "reasoning_details": [
                {"type": "reasoning.text", "text": "T", "signature": wrapped},
                {"type": "reasoning.encrypted", "data": wrapped, "id": null}]}),
            vec![
                thought("T", Some(signature(Issuer::Native))),
                thought("", Some(signature(Issuer::Native))),
            ],
            0,
        ),
    ] {
        decoded(&reply(message, json!("stop")), |response, lost| {
            let parts = &response.choices[0].parts;
            let (words, thoughts) = parts.split_last().expect("parts");
            assert_eq!(words.kind, PartKind::Text("A".into()));
            let thoughts: Vec<_> = thoughts.iter().map(|part| part.kind.clone()).collect();
            assert_eq!(thoughts, kinds);
            assert_eq!(lost, vec![Action::Dropped; losses]);
        });
    }
}

#[test]
fn a_seal_finds_its_call() {
    let wrapped = signature(Issuer::Native).wrap();
    let message = json!({"content": null,
        "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}],
        "reasoning_details": [{"type": "reasoning.encrypted", "data": wrapped, "id": "c1"}]});
    decoded(&reply(message, json!("tool_calls")), |response, lost| {
        let PartKind::Call(call) = &response.choices[0].parts[0].kind else {
            panic!("a call");
        };
        assert_eq!(call.signature, Some(signature(Issuer::Native)));
        assert_eq!(call.arguments, Arguments::Text("{}".into()));
        assert!(lost.is_empty());
    });
}

#[test]
fn pictures_choices_and_probabilities() {
    let picture =
        json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]);
    let body = json!({"id": "c", "model": "m", "choices": [
        {"index": 1, "message": {"content": "B"}, "finish_reason": "stop"},
        {"index": 0, "message": {"content": "A", "images": picture}, "finish_reason": "stop",
            "logprobs": {"content": [{"token": "A", "logprob": -0.5, "bytes": [65],
                "top_logprobs": [{"token": "A", "logprob": -0.5}]}], "refusal": null}},
    ], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 12,
        "completion_tokens_details": {"reasoning_tokens": 5}}});
    decoded(&body, |response, _| {
        let [first, second] = response.choices.as_slice() else {
            panic!("two choices");
        };
        assert_eq!(second.parts[0].kind, PartKind::Text("B".into()));
        let PartKind::Media(media) = &first.parts[1].kind else {
            panic!("a picture");
        };
        assert_eq!(
            (&*media.mime, &media.source),
            ("image/png", &Source::Base64("AAAA".into()))
        );
        assert_eq!(first.logprobs[0].top, [("A".into(), -0.5)]);
        let usage = Usage {
            input: 3,
            output: 9,
            thinking: 5,
            ..Usage::default()
        };
        assert_eq!(response.usage, Some(usage));
    });
}

#[test]
fn failures_inside_a_success_are_failures() {
    let error = json!({"code": 429, "message": "slow"});
    let limited = (ApiErrorKind::RateLimited, "slow".to_owned());
    for body in [
        json!({"error": error}),
        json!([{"error": error}]),
        json!({"choices": [{"finish_reason": "error", "error": error, "message": {"content": "A"}}]}),
    ] {
        let api_error = failed(&body);
        assert_eq!(
            (api_error.kind, api_error.message.clone()),
            limited,
            "{body}"
        );
    }
    for body in [
        json!({}),
        json!({"choices": []}),
        reply(json!({}), json!("error")),
    ] {
        assert_eq!(failed(&body).kind, ApiErrorKind::BadGateway, "{body}");
    }
}

//! JSON responses: decoded in every dialect, encoded in that of the API reference.

use serde_json::{Value, json};

use super::{call, choice, full_response, options, response, signature, text};
use crate::formats::ResponseCodec as _;
use crate::formats::chat::Chat;
use crate::formats::ids::call_id;
use crate::model::{
    Action, ApiError, ApiErrorKind, Arguments, Finish, Issuer, Losses, Media, PartKind, Response,
    Source, Usage,
};

fn decode(body: &Value, check: impl FnOnce(Response<'_>, Vec<Action>)) {
    let bytes = serde_json::to_vec(body).expect("JSON");
    let mut losses = Losses::default();
    let response = Chat
        .decode_response(&bytes, &mut losses)
        .unwrap_or_else(|api_error| panic!("{body}: {api_error:?}"));
    check(response, losses.0.iter().map(|loss| loss.action).collect());
}

fn decode_failure(body: &Value) -> ApiError {
    let bytes = serde_json::to_vec(body).expect("JSON");
    Chat.decode_response(&bytes, &mut Losses::default())
        .expect_err("an error")
}

fn completion(message: Value, finish: Value) -> Value {
    json!({"id": "c", "model": "m", "created": 5.0,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
}

#[test]
fn the_content_of_a_choice_decides_its_finish() {
    let call = json!([{"id": "", "function": {"name": "f", "arguments": {"a": 1}}}]);
    for (message, finish, expected) in [
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
        decode(&completion(message, finish), |response, losses| {
            assert_eq!(response.choices[0].finish, expected);
            assert_eq!((response.created, response.usage), (5, None));
            assert!(losses.is_empty());
        });
    }
    decode(
        &completion(json!({"content": "A"}), json!("tired")),
        |response, losses| {
            assert_eq!(response.choices[0].finish, Finish::Stop);
            assert_eq!(losses, [Action::Approximated]);
        },
    );
}

#[test]
fn calls_are_decoded_in_every_dialect() {
    let message = json!({"content": "", "tool_calls": [
        {"id": "", "function": {"name": "f", "arguments": {"a": 1, "b": 2}}},
        {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}},
        {"id": "c3", "index": 2, "function": {"name": "h"}},
    ]});
    decode(&completion(message, json!("tool_calls")), |response, _| {
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
fn reasoning_is_decoded_in_every_dialect() {
    let reasoning_part = |text: &'static str, signature| PartKind::Reasoning {
        text: text.into(),
        signature,
    };
    let wrapped = signature(Issuer::Native).wrap();
    for (message, kinds, dropped) in [
        (
            json!({"reasoning": "T", "content": "A"}),
            vec![reasoning_part("T", None)],
            0,
        ),
        (
            json!({"content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "T"}, {"type": "text", "text": "U"}]},
                {"type": "text", "text": "A"},
            ]}),
            vec![reasoning_part("TU", None)],
            0,
        ),
        (
            json!({"content": "A", "reasoning": "T", "reasoning_details": [
                {"type": "reasoning.text", "text": "T", "signature": "EqQB", "index": 0}]}),
            vec![reasoning_part("T", None)],
            1,
        ),
        (
            json!({"content": "A", "reasoning_content": "T", "reasoning_details": [
                {"type": "reasoning.text", "text": "T", "signature": wrapped},
                {"type": "reasoning.encrypted", "data": wrapped, "id": null}]}),
            vec![
                reasoning_part("T", Some(signature(Issuer::Native))),
                reasoning_part("", Some(signature(Issuer::Native))),
            ],
            0,
        ),
    ] {
        decode(&completion(message, json!("stop")), |response, losses| {
            let parts = &response.choices[0].parts;
            let (text, reasoning) = parts.split_last().expect("parts");
            assert_eq!(text.kind, PartKind::Text("A".into()));
            let reasoning: Vec<_> = reasoning.iter().map(|part| part.kind.clone()).collect();
            assert_eq!(reasoning, kinds);
            assert_eq!(losses, vec![Action::Dropped; dropped]);
        });
    }
}

#[test]
fn a_signature_is_attached_to_its_call() {
    let wrapped = signature(Issuer::Native).wrap();
    let message = json!({"content": null,
        "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}],
        "reasoning_details": [{"type": "reasoning.encrypted", "data": wrapped, "id": "c1"}]});
    decode(
        &completion(message, json!("tool_calls")),
        |response, losses| {
            let PartKind::Call(call) = &response.choices[0].parts[0].kind else {
                panic!("a call");
            };
            assert_eq!(call.signature, Some(signature(Issuer::Native)));
            assert_eq!(call.arguments, Arguments::Text("{}".into()));
            assert!(losses.is_empty());
        },
    );
}

#[test]
fn images_choices_and_logprobs_are_decoded() {
    let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]);
    let body = json!({"id": "c", "model": "m", "choices": [
        {"index": 1, "message": {"content": "B"}, "finish_reason": "stop"},
        {"index": 0, "message": {"content": "A", "images": image}, "finish_reason": "stop",
            "logprobs": {"content": [{"token": "A", "logprob": -0.5, "bytes": [65],
                "top_logprobs": [{"token": "A", "logprob": -0.5}]}], "refusal": null}},
    ], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 12,
        "completion_tokens_details": {"reasoning_tokens": 5}}});
    decode(&body, |response, _| {
        let [first, second] = response.choices.as_slice() else {
            panic!("two choices");
        };
        assert_eq!(second.parts[0].kind, PartKind::Text("B".into()));
        let PartKind::Media(media) = &first.parts[1].kind else {
            panic!("a image");
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
fn an_error_inside_of_a_success_is_an_error() {
    let error = json!({"code": 429, "message": "slow"});
    let limited = (ApiErrorKind::RateLimited, "slow".to_owned());
    for body in [
        json!({"error": error}),
        json!([{"error": error}]),
        json!({"choices": [{"finish_reason": "error", "error": error, "message": {"content": "A"}}]}),
    ] {
        let api_error = decode_failure(&body);
        assert_eq!(
            (api_error.kind, api_error.message.clone()),
            limited,
            "{body}"
        );
    }
    for body in [
        json!({}),
        json!({"choices": []}),
        completion(json!({}), json!("error")),
    ] {
        assert_eq!(
            decode_failure(&body).kind,
            ApiErrorKind::BadGateway,
            "{body}"
        );
    }
}

fn encoded(response: &Response<'_>) -> Value {
    serde_json::from_slice(&Chat.encode_response(response, &options(), &mut Losses::default()))
        .expect("JSON")
}

#[test]
fn a_text_response_has_every_field_in_the_usual_order() {
    let completion = response(vec![choice(
        vec![text("Hi "), text("there.")],
        Finish::Stop,
    )]);
    assert_eq!(
        String::from_utf8(Chat.encode_response(&completion, &options(), &mut Losses::default()))
            .expect("text"),
        concat!(
            r#"{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":"options","#,
            r#""choices":[{"index":0,"message":{"role":"assistant","content":"Hi there.","refusal":null},"#,
            r#""logprobs":null,"finish_reason":"stop"}],"#,
            r#""usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"#,
            r#""prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"#,
            r#""completion_tokens_details":{"reasoning_tokens":3}}}"#,
        )
    );
}

#[test]
fn the_identity_falls_back_to_the_request_and_unknown_usage_is_left_out() {
    let mut completion = response(vec![choice(vec![], Finish::Stop)]);
    completion.usage = None;
    completion.created = 5;
    completion.id = "".into();
    let mut unnamed = options();
    unnamed.model.clear();
    let body: Value = serde_json::from_slice(&Chat.encode_response(
        &completion,
        &unnamed,
        &mut Losses::default(),
    ))
    .expect("JSON");
    assert_eq!(body["id"], "chatcmpl-req-9");
    assert_eq!(body["created"], 5);
    assert_eq!(body["model"], "upstream");
    assert_eq!(body.get("usage"), None);
    assert_eq!(body["choices"][0]["message"]["content"], Value::Null);
    for (upstream, id) in [
        ("resp_7", "chatcmpl-7"),
        ("chatcmpl-8", "chatcmpl-8"),
        ("x", "chatcmpl-x"),
    ] {
        completion.id = upstream.into();
        assert_eq!(encoded(&completion)["id"], id);
    }
}

#[test]
fn every_part_of_a_message_is_encoded() {
    let body = encoded(&full_response());
    let generated = [call_id("msg_1", 0, 1), call_id("msg_1", 0, 2)];
    let wrapped = |issuer| super::signature(issuer).wrap();
    use crate::model::Issuer::{Native, Redacted, Thinking};
    assert_eq!(
        body["choices"][0],
        json!({
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "One. Two.",
                "reasoning_content": "Hm. Aha.",
                "refusal": null,
                "tool_calls": [
                    {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{\"x\":1}"}},
                    {"id": generated[0], "type": "custom", "custom": {"name": "shout", "input": "free\ntext"}},
                    {"id": generated[1], "type": "function", "function": {"name": "look", "arguments": "{}"}},
                ],
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "Hm. ", "signature": wrapped(Thinking), "format": "omniglot-v1", "index": 0},
                    {"type": "reasoning.text", "text": "Aha.", "format": "omniglot-v1", "index": 1},
                    {"type": "reasoning.encrypted", "data": wrapped(Redacted), "id": null, "format": "omniglot-v1", "index": 2},
                    {"type": "reasoning.encrypted", "data": wrapped(Native), "id": generated[0], "format": "omniglot-v1", "index": 3},
                ],
                "annotations": [{"type": "url_citation", "url_citation":
                    {"start_index": 0, "end_index": 4, "title": "", "url": "https://a.example"}}],
                "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
            },
            "logprobs": {"content": [
                {"token": "One", "logprob": -0.5, "bytes": null, "top_logprobs": [{"token": "Won", "logprob": -1.5, "bytes": null}]},
                {"token": ". ", "logprob": -0.5, "bytes": null, "top_logprobs": [{"token": "Won", "logprob": -1.5, "bytes": null}]},
            ], "refusal": null},
            "finish_reason": "tool_calls",
        })
    );
    assert_eq!(body["choices"][1]["message"]["refusal"], "No.");
    assert_eq!(body["choices"][2]["message"]["refusal"], "policy");
    assert_eq!(body["choices"][2]["index"], 2);
}

#[test]
fn finish_reasons_depend_on_calls() {
    for (finish, bare, with_calls) in [
        (Finish::Stop, "stop", "tool_calls"),
        (
            Finish::StopSequence(Some("END".into())),
            "stop",
            "tool_calls",
        ),
        (Finish::Length, "length", "length"),
        (Finish::ContextFull, "length", "length"),
        (Finish::Tools, "tool_calls", "tool_calls"),
        (Finish::Filtered(None), "content_filter", "content_filter"),
        (Finish::Refused, "stop", "tool_calls"),
        (Finish::Paused, "stop", "tool_calls"),
        (Finish::MalformedCall, "stop", "tool_calls"),
        (Finish::Other, "stop", "tool_calls"),
    ] {
        let completion = response(vec![
            choice(vec![text("a")], finish.clone()),
            choice(vec![text(""), call(Some("c"), "{\"x\":")], finish),
        ]);
        let body = encoded(&completion);
        assert_eq!(body["choices"][0]["finish_reason"], bare);
        assert_eq!(body["choices"][1]["finish_reason"], with_calls);
        assert_eq!(body["choices"][1]["message"]["content"], Value::Null);
        let half = &body["choices"][1]["message"]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(half, "{\"x\":");
    }
}

#[test]
fn audio_has_its_own_field_and_an_empty_response_gets_a_choice() {
    let audio = PartKind::Media(Media {
        mime: "audio/wav".into(),
        source: Source::Base64("UklG".into()),
        name: None,
        detail: None,
    });
    let body = encoded(&response(vec![choice(vec![audio], Finish::Stop)]));
    let audio =
        json!({"id": "audio_1", "data": "UklG", "expires_at": 1_760_000_000, "transcript": ""});
    assert_eq!(body["choices"][0]["message"]["audio"], audio);
    let body = encoded(&response(vec![]));
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
}

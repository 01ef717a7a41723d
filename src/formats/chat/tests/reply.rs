//! Whole replies.

use serde_json::{Value, json};

use super::{asked, call, choice, full_response, response, text};
use crate::formats::chat::response::encode;
use crate::formats::identity::call_id;
use crate::model::{Finish, Media, PartKind, Source};

fn encoded(response: &super::Response<'_>) -> Value {
    serde_json::from_slice(&encode(
        response,
        &asked(),
        &mut crate::model::Losses::default(),
    ))
    .expect("JSON")
}

#[test]
fn a_plain_reply_has_every_key_in_the_usual_order() {
    let reply = response(vec![choice(
        vec![text("Hi "), text("there.")],
        Finish::Stop,
    )]);
    assert_eq!(
        String::from_utf8(encode(
            &reply,
            &asked(),
            &mut crate::model::Losses::default()
        ))
        .expect("text"),
        concat!(
            r#"{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":"asked","#,
            r#""choices":[{"index":0,"message":{"role":"assistant","content":"Hi there.","refusal":null},"#,
            r#""logprobs":null,"finish_reason":"stop"}],"#,
            r#""usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"#,
            r#""prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"#,
            r#""completion_tokens_details":{"reasoning_tokens":3}}}"#,
        )
    );
}

#[test]
fn the_heading_falls_back_and_unknown_usage_is_left_out() {
    let mut reply = response(vec![choice(vec![], Finish::Stop)]);
    reply.usage = None;
    reply.created = 5;
    reply.id = "".into();
    let mut unnamed = asked();
    unnamed.model.clear();
    let body: Value = serde_json::from_slice(&encode(
        &reply,
        &unnamed,
        &mut crate::model::Losses::default(),
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
        reply.id = upstream.into();
        assert_eq!(encoded(&reply)["id"], id);
    }
}

#[test]
fn everything_a_message_can_hold() {
    let body = encoded(&full_response());
    let made = [call_id("msg_1", 0, 1), call_id("msg_1", 0, 2)];
    let sealed = |issuer| super::signature(issuer).wrap();
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
                    {"id": made[0], "type": "custom", "custom": {"name": "shout", "input": "free\ntext"}},
                    {"id": made[1], "type": "function", "function": {"name": "look", "arguments": "{}"}},
                ],
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "Hm. ", "signature": sealed(Thinking), "format": "omniglot-v1", "index": 0},
                    {"type": "reasoning.text", "text": "Aha.", "format": "omniglot-v1", "index": 1},
                    {"type": "reasoning.encrypted", "data": sealed(Redacted), "id": null, "format": "omniglot-v1", "index": 2},
                    {"type": "reasoning.encrypted", "data": sealed(Native), "id": made[0], "format": "omniglot-v1", "index": 3},
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
fn finish_reasons() {
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
        let reply = response(vec![
            choice(vec![text("a")], finish.clone()),
            choice(vec![text(""), call(Some("c"), "{\"x\":")], finish),
        ]);
        let body = encoded(&reply);
        assert_eq!(body["choices"][0]["finish_reason"], bare);
        assert_eq!(body["choices"][1]["finish_reason"], with_calls);
        assert_eq!(body["choices"][1]["message"]["content"], Value::Null);
        let half = &body["choices"][1]["message"]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(half, "{\"x\":");
    }
}

#[test]
fn sound_has_its_own_key_and_no_choice_is_an_empty_one() {
    let sound = PartKind::Media(Media {
        mime: "audio/wav".into(),
        source: Source::Base64("UklG".into()),
        name: None,
        detail: None,
    });
    let body = encoded(&response(vec![choice(vec![sound], Finish::Stop)]));
    let audio =
        json!({"id": "audio_1", "data": "UklG", "expires_at": 1_760_000_000, "transcript": ""});
    assert_eq!(body["choices"][0]["message"]["audio"], audio);
    let body = encoded(&response(vec![]));
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
}

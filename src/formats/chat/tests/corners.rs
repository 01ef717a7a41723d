//! What other formats do not show: borrowed data, paths, and a message with everything in it.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{choice, full_response, options, response, signature, text};
use crate::formats::chat::Chat;
use crate::formats::ids::call_id;
use crate::formats::{FieldPaths as _, RequestCodec as _, RequestHead, ResponseCodec as _};
use crate::model::{Action, FieldLocation, Finish, Issuer, Losses, PartKind, Setting, Source};

#[test]
fn image_data_is_borrowed_from_the_body() {
    let body = br#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}"#;
    let request = Chat
        .decode_request(&RequestHead::default(), body, &mut Losses::default())
        .expect("a request");
    let PartKind::Media(media) = &request.turns[0].parts[0].kind else {
        panic!("{request:?}");
    };
    assert!(matches!(
        media.source,
        Source::Base64(Cow::Borrowed("AAAA"))
    ));
}

/// The reasoning of a message that is sent back, with the paths that are reported as dropped.
fn reasoning(message: Value) -> (Vec<(String, bool)>, Vec<String>) {
    let body = json!({"model": "m", "messages": [message]}).to_string();
    let mut losses = Losses::default();
    let request = Chat
        .decode_request(&RequestHead::default(), body.as_bytes(), &mut losses)
        .expect("a request");
    let own = signature(Issuer::Native);
    let found = request.turns[0].parts.iter();
    let found = found.filter_map(|part| match &part.kind {
        PartKind::Reasoning { text, signature } => {
            assert!(signature.as_ref().is_none_or(|signature| *signature == own));
            Some((text.to_string(), signature.is_some()))
        }
        _ => None,
    });
    let paths = losses.0.iter().map(|loss| {
        assert_eq!(loss.action, Action::Dropped);
        Chat.path_of(&loss.location)
    });
    (found.collect(), paths.collect())
}

/// Unsigned reasoning of a client goes to no other format.
#[test]
fn a_foreign_signature_is_dropped() {
    let read = |text: &str, is_signed: bool| (text.to_owned(), is_signed);
    let wrapped = signature(Issuer::Native).wrap();
    for key in ["reasoning_content", "reasoning"] {
        let mut message = json!({"role": "assistant", "content": "42",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": wrapped}]});
        message[key] = json!("Hm.");
        let expected = vec![read("Hm.", false), read("", true)];
        assert_eq!(reasoning(message), (expected, vec![]));
    }
    let foreign = json!({"role": "assistant", "reasoning_details": [
        {"type": "reasoning.text", "text": "Hm.", "signature": "EqQBCkYIBRgC"},
        {"type": "reasoning.summary", "summary": "So."},
        {"type": "reasoning.encrypted", "data": "gAAAA", "id": "rs_1"},
        {"type": "reasoning.encrypted", "data": wrapped, "id": "gone"},
        {"type": "reasoning.dream", "depth": 1},
    ]});
    let (found, dropped) = reasoning(foreign);
    assert_eq!(found, [read("Hm.", false), read("So.", false)]);
    assert_eq!(
        dropped,
        [
            "messages[0].reasoning_details[2].data",
            "messages[0].reasoning_details[4]",
            "messages[0].reasoning_details[4].depth",
            "messages[0].reasoning_details",
        ]
    );
}

#[test]
fn locations_have_the_paths_of_the_format() {
    for (location, path) in [
        (
            FieldLocation::Part {
                turn: Some(3),
                part: Some(1),
            },
            "messages[3].content[1]",
        ),
        (FieldLocation::Turn { turn: Some(2) }, "messages[2]"),
        (FieldLocation::Turn { turn: None }, "messages"),
        (FieldLocation::Tool { tool: 2 }, "tools[2]"),
        (FieldLocation::Setting(Setting::Choices), "n"),
        (FieldLocation::Path("logit_bias".into()), "logit_bias"),
    ] {
        assert_eq!(Chat.path_of(&location), path);
    }
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
fn every_part_of_a_message_is_encoded() {
    let body = Chat.encode_response(&full_response(), &options(), &mut Losses::default());
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let generated = [call_id("msg_1", 0, 1), call_id("msg_1", 0, 2)];
    let wrapped = |issuer| signature(issuer).wrap();
    use Issuer::{Native, Redacted, Thinking};
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

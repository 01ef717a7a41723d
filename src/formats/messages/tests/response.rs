//! JSON responses.

use serde_json::{Value, json};

use super::{call, encode, options, response, text};
use crate::formats::ResponseCodec as _;
use crate::formats::messages::Messages;
use crate::model::{
    Action, ApiError, ApiErrorKind, Arguments, Call, Citation, Finish, Issuer, Json, Losses, Media,
    PartKind, Response, Signature, Source, ToolKind, Usage,
};

fn decode_response(body: &Value, check: impl FnOnce(crate::model::Response<'_>, Vec<Action>)) {
    let body = body.to_string();
    let mut losses = Losses::default();
    let response = Messages.decode_response(body.as_bytes(), &mut losses);
    let actions = losses.0.iter().map(|loss| loss.action).collect();
    check(response.expect("a good response"), actions);
}

fn decode_error(body: &str) -> ApiError {
    Messages
        .decode_response(body.as_bytes(), &mut Losses::default())
        .expect_err("a bad response")
}

#[test]
fn every_stop_reason_is_decoded() {
    for (reason, finish) in [
        (json!("end_turn"), Finish::Stop),
        (json!("max_tokens"), Finish::Length),
        (
            json!("stop_sequence"),
            Finish::StopSequence(Some("END".into())),
        ),
        (json!("tool_use"), Finish::Tools),
        (json!("refusal"), Finish::Filtered(None)),
        (json!("pause_turn"), Finish::Paused),
        (json!("compaction"), Finish::Paused),
        (json!("model_context_window_exceeded"), Finish::ContextFull),
        (json!("news"), Finish::Other),
        (Value::Null, Finish::Other),
    ] {
        let body = json!({"id": "msg_1", "model": "m", "content": [], "stop_reason": reason,
            "stop_sequence": "END"});
        decode_response(&body, |response, losses| {
            assert_eq!(response.choices[0].finish, finish, "{reason}");
            let is_new = reason == "news";
            assert_eq!(losses.contains(&Action::Approximated), is_new, "{reason}");
            assert_eq!(response.usage, None);
        });
    }
}

#[test]
fn blocks_of_hosted_tools_are_left_out_and_reported() {
    let body = json!({"content": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "é."},
        {"type": "text", "text": "Yes.", "citations": [
            {"type": "char_location", "cited_text": "c", "document_index": 0},
            {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}]},
    ], "usage": {"input_tokens": 5, "cache_read_input_tokens": 80,
        "cache_creation_input_tokens": null, "output_tokens": 3}});
    decode_response(&body, |response, losses| {
        let choice = &response.choices[0];
        assert_eq!(losses, [Action::Dropped; 3]);
        let signatures: Vec<Issuer> = choice
            .parts
            .iter()
            .filter_map(|part| match &part.kind {
                PartKind::Reasoning { signature, .. } => {
                    signature.as_ref().map(|signature| signature.issuer)
                }
                _ => None,
            })
            .collect();
        assert_eq!(signatures, [Issuer::Thinking, Issuer::Redacted]);
        let citation = Citation {
            url: "https://a.example".into(),
            title: Some("A".into()),
            start: 2,
            end: 6,
        };
        assert_eq!(choice.citations, [citation]);
        let usage = Usage {
            input: 85,
            cached: 80,
            output: 3,
            ..Usage::default()
        };
        assert_eq!(response.usage, Some(usage));
    });
}

#[test]
fn arguments_keep_every_digit_of_a_number() {
    let long = r#"{"n":[12345678901234567890123],"b":1}"#;
    let short = r#"{"n":18446744073709551615,"x":2.5}"#;
    let block = |input| format!(r#"{{"type":"tool_use","id":"a","name":"f","input":{input}}}"#);
    let hosted = r#"{"type":"server_tool_use","input":{}}"#;
    let body = format!(
        r#"{{"content":[{},{hosted},{}],"stop_reason":"tool_use"}}"#,
        block(short),
        block(long)
    );
    let mut losses = Losses::default();
    let response = Messages.decode_response(body.as_bytes(), &mut losses);
    let response = response.expect("a good response");
    let arguments = response.choices[0]
        .parts
        .iter()
        .map(|part| match &part.kind {
            PartKind::Call(call) => call.arguments.to_text(),
            other => panic!("a call, not {other:?}"),
        });
    assert_eq!(arguments.collect::<Vec<_>>(), [short, long]);
}

#[test]
fn an_unreadable_response_is_a_bad_gateway() {
    for body in [
        "<html>",
        "[]",
        r#"{"content":"text"}"#,
        r#"{"content":[1]}"#,
    ] {
        assert_eq!(decode_error(body).kind, ApiErrorKind::BadGateway, "{body}");
    }
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Busy."}}"#;
    assert_eq!(decode_error(error).kind, ApiErrorKind::Overloaded);
}

fn content(parts: Vec<PartKind<'static>>) -> Value {
    encode(&response(parts, Finish::Stop))["content"].take()
}

fn signature(issuer: Issuer) -> Option<Signature<'static>> {
    Some(Signature {
        issuer,
        data: "Q2lRQmU5L2U=".into(),
    })
}

#[test]
fn a_response_has_every_required_field() {
    assert_eq!(
        encode(&response(vec![text("Hi there.")], Finish::Stop)),
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "asked-for",
            "content": [{"type": "text", "text": "Hi there."}],
            "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {
                "input_tokens": 5, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 15,
                "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 20},
            },
        })
    );
}

#[test]
fn unknown_fields_have_defaults() {
    let silent = Response {
        id: "".into(),
        usage: None,
        choices: Vec::new(),
        ..response(Vec::new(), Finish::Stop)
    };
    let mut options = options();
    options.model.clear();
    let bytes = Messages.encode_response(&silent, &options, &mut crate::model::Losses::default());
    assert_eq!(
        serde_json::from_slice::<Value>(&bytes).expect("JSON"),
        json!({
            "id": "msg_req-7", "type": "message", "role": "assistant", "model": "upstream-model",
            "content": [], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {
                "input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
                "output_tokens": 0,
            },
        })
    );
}

#[test]
fn every_finish_has_its_stop_reason() {
    let words = || Some("because".into());
    for (finish, alone, beside_a_call) in [
        (Finish::Stop, "end_turn", "tool_use"),
        (Finish::StopSequence(words()), "stop_sequence", "tool_use"),
        (Finish::Length, "max_tokens", "max_tokens"),
        (
            Finish::ContextFull,
            "model_context_window_exceeded",
            "model_context_window_exceeded",
        ),
        (Finish::Tools, "tool_use", "tool_use"),
        (Finish::Filtered(words()), "refusal", "refusal"),
        (Finish::Refused, "refusal", "tool_use"),
        (Finish::Paused, "pause_turn", "tool_use"),
        (Finish::MalformedCall, "end_turn", "tool_use"),
        (Finish::Other, "end_turn", "tool_use"),
    ] {
        let encoded = encode(&response(vec![text("x")], finish.clone()));
        assert_eq!(encoded["stop_reason"], alone, "{finish:?}");
        let sequence = matches!(finish, Finish::StopSequence(_)).then_some("because");
        assert_eq!(encoded["stop_sequence"], json!(sequence));
        let details = matches!(finish, Finish::Filtered(_))
            .then(|| json!({"type": "refusal", "category": null, "explanation": "because"}));
        assert_eq!(encoded.get("stop_details"), details.as_ref());

        let parts = vec![PartKind::Call(call(Some("call_1"), "{}"))];
        let encoded = encode(&response(parts, finish.clone()));
        assert_eq!(encoded["stop_reason"], beside_a_call, "{finish:?}");
    }
}

#[test]
fn a_refusal_is_a_text_block_and_a_stop_reason() {
    let encoded = encode(&response(
        vec![PartKind::Refusal("I cannot.".into())],
        Finish::Stop,
    ));
    assert_eq!(
        encoded["content"],
        json!([{"type": "text", "text": "I cannot."}])
    );
    assert_eq!(encoded["stop_reason"], "refusal");
}

#[test]
fn arguments_are_always_an_object() {
    let tree: Json<'static> = serde_json::from_str(r#"{"b":1,"a":[null]}"#).expect("JSON");
    for (arguments, input) in [
        (
            Arguments::Text(r#" {"city": "Paris"} "#.into()),
            r#"{"city":"Paris"}"#,
        ),
        (Arguments::Text("".into()), "{}"),
        (Arguments::Text(" \n".into()), "{}"),
        (Arguments::Text("[1]".into()), r#"{"_raw":"[1]"}"#),
        (
            Arguments::Text(r#"{"city":"#.into()),
            r#"{"_raw":"{\"city\":"}"#,
        ),
        (Arguments::Tree(tree), r#"{"b":1,"a":[null]}"#),
        (Arguments::Tree(Json::Null), "{}"),
        (Arguments::Tree(Json::Bool(true)), r#"{"_raw":"true"}"#),
    ] {
        let call = Call {
            arguments,
            ..call(Some("call_1"), "")
        };
        let input: Value = serde_json::from_str(input).expect("JSON");
        assert_eq!(
            content(vec![PartKind::Call(call)]),
            json!([{"type": "tool_use", "id": "call_1", "name": "get_weather", "input": input}])
        );
    }
    let free = Call {
        kind: ToolKind::Custom,
        ..call(Some("call_1"), "a \"b\"")
    };
    assert_eq!(
        content(vec![PartKind::Call(free)])[0]["input"],
        json!({"input": "a \"b\""})
    );
}

#[test]
fn a_truncated_call_is_left_out() {
    let parts = || vec![text("Ok."), PartKind::Call(call(Some("call_1"), r#"{"ci"#))];
    let encoded = encode(&response(parts(), Finish::Length));
    assert_eq!(encoded["content"], json!([{"type": "text", "text": "Ok."}]));
    assert_eq!(encoded["stop_reason"], "max_tokens");
    let encoded = encode(&response(parts(), Finish::Stop));
    assert_eq!(encoded["content"][1]["input"], json!({"_raw": "{\"ci"}));
}

#[test]
fn calls_without_an_id_get_a_stable_one() {
    let parts = || {
        let nameless = || PartKind::Call(call(None, "{}"));
        vec![nameless(), text("and"), nameless()]
    };
    let first = content(parts());
    assert_eq!(first, content(parts()));
    let ids = [&first[0]["id"], &first[2]["id"]].map(|id| id.as_str().expect("an id"));
    assert!(
        ids.iter()
            .all(|id| id.starts_with("call_") && id.len() == 29)
    );
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn reasoning_is_encoded_with_its_signature() {
    let wrapped = "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ==";
    let reasoning = |text: &'static str, signature| PartKind::Reasoning {
        text: text.into(),
        signature,
    };
    for (part, block) in [
        (
            reasoning("So.", None),
            json!([{"type": "thinking", "thinking": "So.", "signature": ""}]),
        ),
        (
            reasoning("So.", signature(Issuer::Native)),
            json!([{"type": "thinking", "thinking": "So.", "signature": wrapped}]),
        ),
        (
            reasoning("", signature(Issuer::Native)),
            json!([{"type": "redacted_thinking", "data": wrapped}]),
        ),
        (
            reasoning("", signature(Issuer::Thinking)),
            json!([{"type": "thinking", "thinking": "", "signature": "Q2lRQmU5L2U="}]),
        ),
        (
            reasoning("", signature(Issuer::Redacted)),
            json!([{"type": "redacted_thinking", "data": "Q2lRQmU5L2U="}]),
        ),
        (reasoning("", None), json!([])),
    ] {
        assert_eq!(content(vec![part]), block);
    }
}

#[test]
fn the_signature_of_a_call_stands_before_it() {
    let signed = Call {
        signature: signature(Issuer::Native),
        ..call(Some("call_1"), "{}")
    };
    assert_eq!(
        content(vec![PartKind::Call(signed)]),
        json!([
            {"type": "redacted_thinking", "data": "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ=="},
            {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {}},
        ])
    );
}

#[test]
fn media_become_a_placeholder() {
    let media = |mime: &'static str| {
        PartKind::Media(Media {
            mime: mime.into(),
            source: Source::Base64("iVBO".into()),
            name: None,
            detail: None,
        })
    };
    let parts = vec![text(""), media("image/png"), media("audio/wav"), text("x")];
    let mut response = response(parts, Finish::Stop);
    let second = response.choices[0].clone();
    response.choices[0].citations.push(Citation {
        url: "https://example.com".into(),
        title: None,
        start: 0,
        end: 1,
    });
    response.choices.push(second);
    assert_eq!(
        encode(&response)["content"],
        json!([{"type": "text", "text": "[image]"}, {"type": "text", "text": "x"}])
    );
}

#[test]
fn losses_of_a_response_are_reported() {
    let losses_of = |response: &Response<'_>| {
        let mut losses = Losses::default();
        Messages.encode_response(response, &options(), &mut losses);
        let actions = losses.0.iter().map(|loss| loss.action);
        actions.collect::<Vec<Action>>()
    };
    let garbled = || PartKind::Call(call(Some("a"), "{\"city\""));
    assert_eq!(losses_of(&response(vec![text("Hi")], Finish::Stop)), []);
    let stopped = response(vec![garbled()], Finish::Stop);
    assert_eq!(losses_of(&stopped), [Action::Approximated]);
    let cut = response(vec![garbled()], Finish::Length);
    assert_eq!(losses_of(&cut), [Action::Dropped]);
    let image = Media {
        mime: "image/png".into(),
        source: Source::Base64("AAAA".into()),
        name: None,
        detail: None,
    };
    let mut full = response(vec![PartKind::Media(image)], Finish::Stop);
    full.choices[0].citations.push(Citation {
        url: "https://a.example".into(),
        title: None,
        start: 0,
        end: 1,
    });
    full.choices.push(full.choices[0].clone());
    assert_eq!(losses_of(&full), [Action::Dropped; 3]);
}

//! Whole replies.

use serde_json::{Value, json};

use super::{asked, call, encode, response, text};
use crate::formats::Codec as _;
use crate::formats::messages::Messages;
use crate::model::{
    Action, Arguments, Call, Citation, Finish, Issuer, Json, Losses, Media, PartKind, Response,
    Signature, Source, ToolKind,
};

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
fn a_reply_has_everything_that_clients_insist_on() {
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
fn what_is_not_known_is_not_invented() {
    let silent = Response {
        id: "".into(),
        usage: None,
        choices: Vec::new(),
        ..response(Vec::new(), Finish::Stop)
    };
    let mut asked = asked();
    asked.model.clear();
    let bytes = Messages.encode_response(&silent, &asked, &mut crate::model::Losses::default());
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
fn every_way_to_end_has_its_reason() {
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
        let reply = encode(&response(vec![text("x")], finish.clone()));
        assert_eq!(reply["stop_reason"], alone, "{finish:?}");
        let sequence = matches!(finish, Finish::StopSequence(_)).then_some("because");
        assert_eq!(reply["stop_sequence"], json!(sequence));
        let details = matches!(finish, Finish::Filtered(_))
            .then(|| json!({"type": "refusal", "category": null, "explanation": "because"}));
        assert_eq!(reply.get("stop_details"), details.as_ref());

        let parts = vec![PartKind::Call(call(Some("call_1"), "{}"))];
        let reply = encode(&response(parts, finish.clone()));
        assert_eq!(reply["stop_reason"], beside_a_call, "{finish:?}");
    }
}

#[test]
fn a_refusal_in_words_is_text_and_a_reason() {
    let reply = encode(&response(
        vec![PartKind::Refusal("I cannot.".into())],
        Finish::Stop,
    ));
    assert_eq!(
        reply["content"],
        json!([{"type": "text", "text": "I cannot."}])
    );
    assert_eq!(reply["stop_reason"], "refusal");
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
fn a_call_cut_short_is_left_out() {
    let parts = || vec![text("Ok."), PartKind::Call(call(Some("call_1"), r#"{"ci"#))];
    let reply = encode(&response(parts(), Finish::Length));
    assert_eq!(reply["content"], json!([{"type": "text", "text": "Ok."}]));
    assert_eq!(reply["stop_reason"], "max_tokens");
    let reply = encode(&response(parts(), Finish::Stop));
    assert_eq!(reply["content"][1]["input"], json!({"_raw": "{\"ci"}));
}

#[test]
fn calls_without_an_id_get_one_each_and_always_the_same() {
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
fn thoughts_carry_their_seals() {
    let wrapped = "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ==";
    let thought = |text: &'static str, signature| PartKind::Reasoning {
        text: text.into(),
        signature,
    };
    for (part, block) in [
        (
            thought("So.", None),
            json!([{"type": "thinking", "thinking": "So.", "signature": ""}]),
        ),
        (
            thought("So.", signature(Issuer::Native)),
            json!([{"type": "thinking", "thinking": "So.", "signature": wrapped}]),
        ),
        (
            thought("", signature(Issuer::Native)),
            json!([{"type": "redacted_thinking", "data": wrapped}]),
        ),
        (
            thought("", signature(Issuer::Thinking)),
            json!([{"type": "thinking", "thinking": "", "signature": "Q2lRQmU5L2U="}]),
        ),
        (
            thought("", signature(Issuer::Redacted)),
            json!([{"type": "redacted_thinking", "data": "Q2lRQmU5L2U="}]),
        ),
        (thought("", None), json!([])),
    ] {
        assert_eq!(content(vec![part]), block);
    }
}

#[test]
fn a_seal_on_a_call_stands_before_it() {
    let sealed = Call {
        signature: signature(Issuer::Native),
        ..call(Some("call_1"), "{}")
    };
    assert_eq!(
        content(vec![PartKind::Call(sealed)]),
        json!([
            {"type": "redacted_thinking", "data": "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ=="},
            {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {}},
        ])
    );
}

#[test]
fn what_the_format_has_no_block_for_leaves_at_most_a_trace() {
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
fn what_a_reply_cannot_say_is_reported() {
    let lost = |response: &Response<'_>| {
        let mut losses = Losses::default();
        Messages.encode_response(response, &asked(), &mut losses);
        let actions = losses.0.iter().map(|lost| lost.action);
        actions.collect::<Vec<Action>>()
    };
    let garbled = || PartKind::Call(call(Some("a"), "{\"city\""));
    assert_eq!(lost(&response(vec![text("Hi")], Finish::Stop)), []);
    let stopped = response(vec![garbled()], Finish::Stop);
    assert_eq!(lost(&stopped), [Action::Approximated]);
    let cut = response(vec![garbled()], Finish::Length);
    assert_eq!(lost(&cut), [Action::Dropped]);
    let picture = Media {
        mime: "image/png".into(),
        source: Source::Base64("AAAA".into()),
        name: None,
        detail: None,
    };
    let mut full = response(vec![PartKind::Media(picture)], Finish::Stop);
    full.choices[0].citations.push(Citation {
        url: "https://a.example".into(),
        title: None,
        start: 0,
        end: 1,
    });
    full.choices.push(full.choices[0].clone());
    assert_eq!(lost(&full), [Action::Dropped; 3]);
}

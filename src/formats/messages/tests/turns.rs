//! Turns and content blocks of a request.

use serde_json::{Value, json};

use super::{
    approximated, assistant, assistant_call, chat_request, conversation, decode, decode_lossless,
    dropped, encode_chat, encode_from, media, only_part, refused, refused_status, user,
};
use crate::model::{
    Action, Arguments, Format, Issuer, Json, Part, PartKind, Role, Signature, Source, ToolResult,
    Turn,
};

#[test]
fn turns_keep_their_order_and_index() {
    let body = r#"{"model":"m-1","system":"Be brief.","messages":[
        {"role":"user","content":"Hi"},
        {"role":"assistant","content":[{"type":"text","text":"Hello"},{"type":"text","text":"!"}]},
        {"role":"user","content":"Bye"},
        {"role":"system","content":"Answer in French."}]}"#;
    let text = |text: &'static str, at| Part {
        kind: PartKind::Text(text.into()),
        at,
    };
    let turn = |role, parts, at| Turn { role, parts, at };
    assert_eq!(
        decode_lossless(body).turns,
        [
            turn(Role::System, vec![text("Be brief.", None)], None),
            turn(Role::User, vec![text("Hi", None)], Some(0)),
            turn(
                Role::Model,
                vec![text("Hello", Some(0)), text("!", Some(1))],
                Some(1)
            ),
            turn(Role::User, vec![text("Bye", None)], Some(2)),
            turn(Role::System, vec![text("Answer in French.", None)], Some(3)),
        ]
    );
}

#[test]
fn system_blocks_make_one_turn_and_cache_control_is_reported() {
    let body = r#"{"model":"m-1","system":[{"type":"text","text":"a"},
        {"type":"text","text":"b","cache_control":{"type":"ephemeral"}}],
        "messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}"#;
    let (request, losses) = decode(body);
    let turns = request.expect("a good request").turns;
    assert_eq!((turns.len(), turns[0].parts.len()), (2, 2));
    assert_eq!(turns[0].parts[1].at, Some(1));
    assert_eq!(
        losses,
        [
            "system[1].cache_control",
            "messages[0].content[0].cache_control"
        ]
        .map(dropped)
    );
    let empty = r#"{"model":"m-1","system":[],"messages":[{"role":"user","content":"Hi"}]}"#;
    assert_eq!(decode_lossless(empty).turns.len(), 1);
}

#[test]
fn calls_and_results_are_decoded() {
    let call = r#"{"type":"tool_use","id":"call_1","name":"get_weather","input":{"city":"Paris"}}"#;
    let body = assistant(call);
    let PartKind::Call(call) = only_part(&body) else {
        panic!("a call");
    };
    assert_eq!(
        (call.id.as_deref(), call.name.as_ref()),
        (Some("call_1"), "get_weather")
    );
    assert_eq!(call.arguments.to_text(), r#"{"city":"Paris"}"#);
    assert!(matches!(call.arguments, Arguments::Tree(Json::Object(_))));

    let result = r#"{"type":"tool_result","tool_use_id":"call_1","is_error":true,"content":[{"type":"text","text":"Chart:"},{"type":"image","source":{"type":"url","url":"https://example.com/c"}}]}"#;
    let expected = ToolResult {
        id: Some("call_1".into()),
        name: None,
        parts: vec![
            Part {
                kind: PartKind::Text("Chart:".into()),
                at: Some(0),
            },
            Part {
                kind: media("image/*", Source::Url("https://example.com/c".into()), None),
                at: Some(1),
            },
        ],
        failed: true,
    };
    assert_eq!(only_part(&user(result)), PartKind::Result(expected));

    for (content, parts) in [
        ("", 0),
        (r#","content":null"#, 0),
        (r#","content":"18 C""#, 1),
    ] {
        let result = format!(r#"{{"type":"tool_result","tool_use_id":"call_1"{content}}}"#);
        let body = user(&result);
        let PartKind::Result(result) = only_part(&body) else {
            panic!("a result");
        };
        assert_eq!((result.parts.len(), result.failed), (parts, false));
    }
}

#[test]
fn reasoning_is_decoded_with_its_signature() {
    let foreign = Signature {
        issuer: Issuer::Responses,
        data: "rs_up1\ngAAAAABencrypted".into(),
    };
    for (wire, signature) in [
        (
            "RXJVQkNrWUlB",
            Some(Signature {
                issuer: Issuer::Thinking,
                data: "RXJVQkNrWUlB".into(),
            }),
        ),
        (
            "b21uaWdsb3QvMSBlCnJzX3VwMQpnQUFBQUFCZW5jcnlwdGVk",
            Some(foreign),
        ),
        ("", None),
    ] {
        let block = format!(r#"{{"type":"thinking","thinking":"So.","signature":"{wire}"}}"#);
        let text = "So.".into();
        assert_eq!(
            only_part(&assistant(&block)),
            PartKind::Reasoning { text, signature }
        );
    }
    for (data, issuer, raw) in [
        ("EqQBCkYI", Issuer::Redacted, "EqQBCkYI"),
        (
            "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ==",
            Issuer::Native,
            "Q2lRQmU5L2U=",
        ),
    ] {
        let block = format!(r#"{{"type":"redacted_thinking","data":"{data}"}}"#);
        let signature = Some(Signature {
            issuer,
            data: raw.into(),
        });
        let text = "".into();
        assert_eq!(
            only_part(&assistant(&block)),
            PartKind::Reasoning { text, signature }
        );
    }
}

#[test]
fn blocks_of_hosted_tools_are_dropped_and_reported() {
    let body = assistant(
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},
        {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},
        {"type":"text","text":"It rains.","citations":[{"type":"web_search_result_location"}]},
        {"type":"invented_later"}"#,
    );
    let (request, losses) = decode(&body);
    let turns = request.expect("a good request").turns;
    assert_eq!(turns[0].parts.len(), 1);
    assert_eq!(turns[0].parts[0].at, Some(2));
    assert_eq!(
        losses,
        [
            "messages[0].content[0]",
            "messages[0].content[1]",
            "messages[0].content[2].citations",
            "messages[0].content[3]"
        ]
        .map(dropped)
    );
}

#[test]
fn tool_references_become_names() {
    let body = user(
        r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"get_weather"}]}"#,
    );
    let (request, losses) = decode(&body);
    let turns = request.expect("a good request").turns;
    let PartKind::Result(result) = &turns[0].parts[0].kind else {
        panic!("a result");
    };
    assert_eq!(result.parts[0].kind, PartKind::Text("get_weather".into()));
    assert_eq!(losses, [approximated("messages[0].content[0].content[0]")]);

    let body = conversation(
        r#"{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"tool_addition","tool":{}}]}"#,
    );
    assert_eq!(decode(&body).1, [dropped("messages[1].content[0]")]);
}

#[test]
fn unsupported_blocks_are_refused() {
    for block in [
        r#"{"type":"search_result","source":"x","title":"y","content":[]}"#,
        r#"{"type":"container_upload","file_id":"f"}"#,
        r#"{"type":"tool_use","id":"a","name":"b","input":{}}"#,
        r#"{"type":"thinking","thinking":"x","signature":""}"#,
        r#"{"type":"invented_later"}"#,
    ] {
        assert_eq!(refused(&user(block)), "messages[0].content[0]", "{block}");
    }
    for block in [
        r#"{"type":"compaction","content":"a summary"}"#,
        r#"{"type":"tool_result","tool_use_id":"a"}"#,
    ] {
        assert_eq!(refused(&assistant(block)), "messages[0].content[0]");
    }
    let system = r#"{"model":"m-1","system":[{"type":"image"}],"messages":[]}"#;
    assert_eq!(refused(system), "system[0]");
}

#[test]
fn invalid_blocks_are_refused_by_their_path() {
    for (block, field) in [
        ("7", ""),
        (r#"{"text":"x"}"#, ".type"),
        (r#"{"type":"text"}"#, ".text"),
        (r#"{"type":"text","text":7}"#, ".text"),
        (r#"{"type":"image"}"#, ".source"),
        (
            r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
            ".source.file_id",
        ),
        (
            r#"{"type":"image","source":{"type":"ftp"}}"#,
            ".source.type",
        ),
        (
            r#"{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":""}}"#,
            ".source.media_type",
        ),
        (
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png"}}"#,
            ".source.data",
        ),
        (
            r#"{"type":"document","source":{"type":"content","content":[{"type":"image"}]}}"#,
            ".source.content[0]",
        ),
        (r#"{"type":"tool_result"}"#, ".tool_use_id"),
        (
            r#"{"type":"tool_result","tool_use_id":"a","content":{}}"#,
            ".content",
        ),
        (
            r#"{"type":"tool_result","tool_use_id":"a","content":[{"type":"browser_state"}]}"#,
            ".content[0]",
        ),
    ] {
        let expected = format!("messages[0].content[0]{field}");
        assert_eq!(refused(&user(block)), expected, "{block}");
    }
    for (block, field) in [
        (r#"{"type":"tool_use","name":"b","input":{}}"#, ".id"),
        (r#"{"type":"tool_use","id":"a","name":"b"}"#, ".input"),
        (
            r#"{"type":"tool_use","id":"a","name":"b","input":"{}"}"#,
            ".input",
        ),
        (r#"{"type":"redacted_thinking"}"#, ".data"),
    ] {
        let expected = format!("messages[0].content[0]{field}");
        assert_eq!(refused(&assistant(block)), expected, "{block}");
    }
    for (message, param) in [
        (r#"{"role":"tool","content":"x"}"#, "messages[0].role"),
        (r#"{"content":"x"}"#, "messages[0].role"),
        (r#"{"role":"user"}"#, "messages[0].content"),
        (r#"{"role":"user","content":7}"#, "messages[0].content"),
    ] {
        assert_eq!(refused(&conversation(message)), param);
    }
}

#[test]
fn every_call_gets_exactly_one_result() {
    let (body, losses) = encode_chat(
        json!({"messages": [
            assistant_call("a.1", "not json"),
            {"role": "user", "content": "Never mind."},
            assistant_call("b", " "),
            {"role": "tool", "tool_call_id": "b", "content": "ok"},
            {"role": "tool", "tool_call_id": "b", "content": "again"},
            {"role": "tool", "tool_call_id": "ghost", "content": "boo"},
            {"role": "assistant", "content": "Done."},
        ]}),
        &[],
    );
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "(continued)"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a_1", "name": "f", "input": {"_raw": "not json"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a_1", "content": "(no result)",
                 "is_error": true},
                {"type": "text", "text": "Never mind."}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "ok"}]},
            {"role": "assistant", "content": "Done."},
        ])
    );
    let count = |expected| losses.iter().filter(|action| **action == expected).count();
    assert_eq!(count(Action::Dropped), 2);
    // The tool that was called was never declared.
    assert_eq!(count(Action::Added), 1);
    assert_eq!(body["tools"][0]["name"], "f");
}

#[test]
fn calls_of_the_last_turn_get_results() {
    let (body, _) = encode_chat(
        json!({"messages": [{"role": "user", "content": "Hi"}, assistant_call("c", "{}")]}),
        &[("messages_prefill", "false")],
    );
    assert_eq!(body["messages"][2]["content"][0]["content"], "(no result)");
}

#[test]
fn deprecated_function_calls_get_ids() {
    let (body, _) = encode_chat(
        json!({"messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "ok"},
        ]}),
        &[],
    );
    let id = &body["messages"][1]["content"][0]["id"];
    assert!(id.as_str().is_some_and(|id| id.starts_with("call_")));
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], *id);
    assert_eq!(body["messages"][2]["content"][0]["content"], "ok");
}

#[test]
fn a_last_turn_of_the_model_needs_prefill() {
    let body = chat_request(json!({"messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well,"}]}));
    assert_eq!(
        refused_status(Format::Chat, &body, &[("messages_prefill", "false")]),
        400
    );
    assert!(encode_from(Format::Chat, &body, &[], None).is_ok());
}

#[test]
fn system_turns_stay_only_between_user_and_model() {
    let turns = |roles: &[&str]| {
        let turns: Vec<Value> = roles
            .iter()
            .map(|role| json!({"role": role, "content": role}))
            .collect();
        let (body, losses) = encode_chat(
            json!({"messages": turns}),
            &[("messages_mid_system", "true")],
        );
        let kept = body["messages"].as_array().expect("turns").iter();
        let kept: Vec<String> = kept.map(|turn| turn["role"].to_string()).collect();
        (kept.join(" ").replace('"', ""), losses.len())
    };
    let user_system = "user system".to_owned();
    assert_eq!(turns(&["user", "developer", "system"]), (user_system, 0));
    let hoisted = "user assistant user".to_owned();
    assert_eq!(
        turns(&["user", "assistant", "system", "user"]),
        (hoisted, 1)
    );
    assert_eq!(turns(&["user", "system", "user"]), ("user".to_owned(), 1));
}

#[test]
fn reasoning_without_an_own_signature_is_dropped() {
    let (body, losses) = encode_chat(
        json!({"messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Ho", "reasoning_content": "Hm."},
            {"role": "user", "content": "So?"},
        ]}),
        &[],
    );
    assert_eq!(body["messages"][1]["content"], "Ho");
    assert_eq!(losses, [Action::Dropped]);
}

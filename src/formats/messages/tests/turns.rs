//! Turns and content blocks of a request.

use super::{approximated, decode, dropped, read, refused};
use crate::model::{
    Arguments, Issuer, Json, Media, Part, PartKind, Role, Signature, Source, ToolResult, Turn,
};

fn conversation(messages: &str) -> String {
    format!(r#"{{"model":"m-1","max_tokens":9,"messages":[{messages}]}}"#)
}

/// A user's and an assistant's turn with these blocks.
fn user(blocks: &str) -> String {
    conversation(&format!(r#"{{"role":"user","content":[{blocks}]}}"#))
}

fn assistant(blocks: &str) -> String {
    conversation(&format!(r#"{{"role":"assistant","content":[{blocks}]}}"#))
}

fn only_part(body: &str) -> PartKind<'_> {
    let mut turns = read(body).turns;
    assert_eq!(turns.len(), 1);
    let mut parts = turns.remove(0).parts;
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].at, Some(0));
    parts.remove(0).kind
}

fn media<'a>(mime: &'a str, source: Source<'a>, name: Option<&'a str>) -> PartKind<'a> {
    PartKind::Media(Media {
        mime: mime.into(),
        source,
        name: name.map(Into::into),
        detail: None,
    })
}

#[test]
fn turns_stand_where_the_client_put_them() {
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
        read(body).turns,
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
fn system_blocks_make_one_turn_and_cache_hints_are_reported() {
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
    assert_eq!(read(empty).turns.len(), 1);
}

#[test]
fn media_keep_their_source() {
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}"#;
    assert_eq!(
        only_part(&user(image)),
        media("image/png", Source::Base64("iVBO".into()), None)
    );
    let image = r#"{"type":"image","source":{"type":"url","url":"https://example.com/cat.png"}}"#;
    assert_eq!(
        only_part(&user(image)),
        media(
            "image/*",
            Source::Url("https://example.com/cat.png".into()),
            None
        )
    );
    let document = r#"{"type":"document","title":"report.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}}"#;
    assert_eq!(
        only_part(&user(document)),
        media(
            "application/pdf",
            Source::Base64("JVBE".into()),
            Some("report.pdf")
        )
    );
    let document = r#"{"type":"document","source":{"type":"url","url":"https://example.com/a"}}"#;
    assert_eq!(
        only_part(&user(document)),
        media(
            "application/pdf",
            Source::Url("https://example.com/a".into()),
            None
        )
    );
    let document =
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}"#;
    assert_eq!(
        only_part(&user(document)),
        media("text/plain", Source::Plain("words".into()), None)
    );
    let document = r#"{"type":"document","source":{"type":"content","content":"words"}}"#;
    assert_eq!(
        only_part(&user(document)),
        media("text/plain", Source::Plain("words".into()), None)
    );
}

#[test]
fn a_document_in_blocks_becomes_one_text() {
    let body = user(
        r#"{"type":"document","context":"by Ann","citations":{"enabled":true},"source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
    );
    let (request, losses) = decode(&body);
    let kind = &request.expect("a good request").turns[0].parts[0].kind;
    assert_eq!(
        *kind,
        media("text/plain", Source::Plain("a\n\nb".into()), None)
    );
    assert_eq!(
        losses,
        [
            approximated("messages[0].content[0].source.content"),
            dropped("messages[0].content[0].context"),
            dropped("messages[0].content[0].citations"),
        ]
    );
}

#[test]
fn calls_and_results_keep_ids_and_trees() {
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
fn thoughts_come_back_with_their_seal() {
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
fn what_hosted_tools_did_is_dropped_from_answers_and_reported() {
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
fn tools_that_were_looked_up_are_named() {
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
fn content_without_a_counterpart_is_refused() {
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
fn broken_blocks_are_refused_by_their_path() {
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

//! Tools and the tool choice of a request.

use serde_json::{Value, json};

use super::{
    chat_request, decode, decode_lossless, dropped, encode_chat, encode_from, refused,
    refused_status, with,
};
use crate::model::{Action, Format, Search, ToolChoice, ToolKind};

#[test]
fn tools_are_decoded_with_schema_and_index() {
    let body = with(
        r#""tools":[{"type":"web_search_20250305","name":"web_search"},
            {"type":"custom","name":"a","description":"does a","input_schema":{"type":"object"},"strict":true},
            {"name":"b","input_schema":{"type":"object"}},
            {"type":"code_execution_20260120","name":"code_execution"}]"#,
    );
    let request = decode_lossless(&body);
    let [a, b] = &request.tools[..] else {
        panic!("two functions");
    };
    assert_eq!((a.name.as_ref(), a.at, a.strict), ("a", 1, Some(true)));
    assert_eq!(a.description.as_deref(), Some("does a"));
    assert_eq!(
        a.schema.as_ref().map(ToString::to_string).as_deref(),
        Some(r#"{"type":"object"}"#)
    );
    assert_eq!((b.name.as_ref(), b.at, b.strict), ("b", 2, None));
    assert_eq!(b.kind, ToolKind::Function);
    assert_eq!(request.search, Some(Search::default()));
    assert!(request.code_execution);
}

#[test]
fn web_search_is_decoded_with_the_user_location() {
    let body = with(
        r#""tools":[{"type":"web_search_20260209","name":"web_search","max_uses":3,"allowed_domains":["a.example"],"blocked_domains":null,
            "user_location":{"type":"approximate","city":"Paris","region":"IDF","country":"FR","timezone":"Europe/Paris"}}]"#,
    );
    let (request, losses) = decode(&body);
    let expected = Search {
        context_size: None,
        city: Some("Paris".into()),
        region: Some("IDF".into()),
        country: Some("FR".into()),
        timezone: Some("Europe/Paris".into()),
        allowed_domains: vec!["a.example".into()],
    };
    assert_eq!(request.expect("a good request").search, Some(expected));
    assert_eq!(losses, [dropped("tools[0].max_uses")]);
}

#[test]
fn vendor_tools_are_refused_by_name() {
    for kind in [
        "web_fetch_20250910",
        "bash_20250124",
        "text_editor_20250728",
        "memory_20250818",
        "tool_search_tool_regex_20251119",
        "computer_20251124",
        "mcp_toolset",
    ] {
        let body = with(&format!(r#""tools":[{{"type":"{kind}"}}]"#));
        let api_error = decode(&body).0.expect_err("a hosted tool");
        assert_eq!(api_error.param.as_deref(), Some("tools[0].type"));
        assert!(api_error.message.contains(kind), "{}", api_error.message);
    }
    assert_eq!(
        refused(&with(r#""tools":[{"name":"x"}]"#)),
        "tools[0].input_schema"
    );
    assert_eq!(
        refused(&with(r#""tools":[{"input_schema":{}}]"#)),
        "tools[0].name"
    );
}

#[test]
fn tool_choice_and_parallel_calls_are_decoded() {
    for (choice, expected, parallel) in [
        (r#"{"type":"auto"}"#, ToolChoice::Auto, None),
        (
            r#"{"type":"any","disable_parallel_tool_use":false}"#,
            ToolChoice::Required,
            Some(true),
        ),
        (
            r#"{"type":"tool","name":"a","disable_parallel_tool_use":true}"#,
            ToolChoice::One("a".into()),
            Some(false),
        ),
        (r#"{"type":"none"}"#, ToolChoice::None, None),
    ] {
        let body = with(&format!(r#""tool_choice":{choice}"#));
        let request = decode_lossless(&body);
        assert_eq!(request.tool_choice, Some(expected));
        assert_eq!(request.parallel_tools, parallel, "{choice}");
    }
    let nameless = with(r#""tool_choice":{"type":"tool"}"#);
    assert_eq!(refused(&nameless), "tool_choice.name");
    let strange = with(r#""tool_choice":{"type":"some"}"#);
    assert_eq!(refused(&strange), "tool_choice.type");
}

#[test]
fn tools_are_encoded_with_schema_and_strict() {
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let function = |name: &str, parameters: Value, strict: bool| {
        json!({"type": "function",
            "function": {"name": name, "parameters": parameters, "strict": strict}})
    };
    let (body, losses) = encode_chat(
        json!({
            "tools": [
                function("closed", closed.clone(), true),
                function("open", json!({"type": "object", "properties": {}}), true),
                {"type": "function", "function": {"name": "bare"}},
                {"type": "custom", "custom": {"name": "free"}},
            ],
            "parallel_tool_calls": false,
        }),
        &[],
    );
    assert_eq!(
        body["tools"],
        json!([
            {"name": "closed", "input_schema": closed, "strict": true},
            {"name": "open", "input_schema": {"type": "object", "properties": {}}},
            {"name": "bare", "input_schema": {"type": "object", "properties": {}}},
            {"name": "free", "input_schema": {"type": "object",
                "properties": {"input": {"type": "string"}}, "required": ["input"]}},
        ])
    );
    assert_eq!(losses, [Action::Dropped, Action::Approximated]);
    let one_at_a_time = json!({"type": "auto", "disable_parallel_tool_use": true});
    assert_eq!(body["tool_choice"], one_at_a_time);
}

#[test]
fn a_tool_choice_without_tools_is_left_out() {
    let (body, losses) = encode_chat(
        json!({"tool_choice": "none", "parallel_tool_calls": false}),
        &[],
    );
    assert_eq!(body.get("tool_choice"), None);
    assert_eq!(losses, []);
    let (body, losses) = encode_chat(json!({"tool_choice": "required"}), &[]);
    assert_eq!(body.get("tool_choice"), None);
    assert_eq!(losses, [Action::Dropped]);
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let none = json!({"tools": tools, "tool_choice": "none", "parallel_tool_calls": false});
    assert_eq!(
        encode_chat(none, &[]).0["tool_choice"],
        json!({"type": "none"})
    );
}

#[test]
fn illegal_tool_names_are_rewritten_everywhere() {
    let body = json!({
        "contents": [
            {"parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "a.b", "args": {}}}]},
            {"parts": [{"functionResponse": {"name": "a.b", "response": {"output": "ok"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "a.b"}]}],
        "toolConfig": {"functionCallingConfig":
            {"mode": "ANY", "allowedFunctionNames": ["a.b"]}},
        "generationConfig": {"maxOutputTokens": 9},
    });
    let (sent, losses) = encode_from(Format::Native, &body, &[], None).expect("a good request");
    assert_eq!(sent["tools"][0]["name"], "a_b");
    assert_eq!(sent["messages"][1]["content"][0]["name"], "a_b");
    assert_eq!(sent["tool_choice"], json!({"type": "tool", "name": "a_b"}));
    assert_eq!(losses.len(), 1);
}

#[test]
fn web_search_is_encoded_with_the_user_location() {
    let options = json!({"search_context_size": "high", "user_location":
        {"type": "approximate", "approximate": {"city": "Bern", "country": "CH"}}});
    let fields = json!({"web_search_options": options});
    let (body, losses) = encode_chat(fields.clone(), &[]);
    assert_eq!(
        body["tools"],
        json!([{"type": "web_search_20250305", "name": "web_search",
            "user_location": {"type": "approximate", "city": "Bern", "country": "CH"}}])
    );
    assert_eq!(losses, [Action::Dropped]);
    let flags = [("messages_web_search", "none")];
    assert_eq!(
        refused_status(Format::Chat, &chat_request(fields), &flags),
        400
    );
}

#[test]
fn code_execution_is_encoded() {
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}],
        "tools": [{"codeExecution": {}}], "generationConfig": {"maxOutputTokens": 9}});
    let (sent, _) = encode_from(Format::Native, &body, &[], None).expect("a good request");
    assert_eq!(
        sent["tools"],
        json!([{"type": "code_execution_20250825", "name": "code_execution"}])
    );
}

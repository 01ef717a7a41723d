//! Tool declarations and the choice among them.

use serde_json::json;

use super::{decode, encoded, rejected, rejected_setting, setting, with};
use crate::model::{Action, FieldLocation, Format, Setting, ToolChoice, ToolKind};

#[test]
fn tools_keep_their_schema_grammar_and_position() {
    let body = with(json!({"tools": [
        {"type": "function", "function": {"name": "a", "description": "d", "strict": true,
            "parameters": {"type": "object", "properties": {"type": {"const": 1}}}}},
        {"type": "function", "function": {"name": "b"}},
        {"type": "custom", "custom": {"name": "c", "format": {"type": "grammar",
            "grammar": {"syntax": "lark", "definition": "start: /x/"}}}},
        {"type": "custom", "custom": {"name": "d", "format": {"type": "text"}}, "extra": 1},
    ], "parallel_tool_calls": false}));
    decode(&body, |request, dropped| {
        let tools = &request.tools;
        let schema = |at: usize| tools[at].schema.as_ref().map(ToString::to_string);
        assert_eq!(
            schema(0).as_deref(),
            Some(r#"{"properties":{"type":{"const":1}},"type":"object"}"#)
        );
        assert_eq!((tools[0].strict, tools[0].at), (Some(true), 0));
        assert_eq!(tools[0].description.as_deref(), Some("d"));
        assert_eq!((schema(1), tools[1].strict, tools[1].at), (None, None, 1));
        assert_eq!(tools[1].kind, ToolKind::Function);
        assert_eq!(
            schema(2).as_deref(),
            Some(r#"{"definition":"start: /x/","syntax":"lark"}"#)
        );
        assert_eq!((tools[2].kind, schema(3)), (ToolKind::Custom, None));
        assert_eq!(request.parallel_tools, Some(false));
        assert_eq!(dropped, ["tools[3].extra"]);
    });
    let hosted = rejected(&with(
        json!({"tools": [{"type": "mcp", "server_label": "x"}]}),
    ));
    assert_eq!(hosted.param.as_deref(), Some("tools[0].type"));
    assert!(hosted.message.contains("mcp"));
}

#[test]
fn every_form_of_tool_choice_is_decoded() {
    let one = |name: &'static str| ToolChoice::One(name.into());
    let subset = |required| ToolChoice::Subset {
        names: vec!["a".into(), "b".into()],
        required,
    };
    let allowed = |mode: &str| {
        json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [
            {"type": "function", "function": {"name": "a"}},
            {"type": "custom", "custom": {"name": "b"}},
        ]}})
    };
    for (choice, expected) in [
        (json!("auto"), ToolChoice::Auto),
        (json!("none"), ToolChoice::None),
        (json!("required"), ToolChoice::Required),
        (
            json!({"type": "function", "function": {"name": "a"}}),
            one("a"),
        ),
        (json!({"type": "custom", "custom": {"name": "b"}}), one("b")),
        (allowed("required"), subset(true)),
        (allowed("auto"), subset(false)),
    ] {
        decode(&with(json!({"tool_choice": choice})), |request, dropped| {
            assert_eq!(request.tool_choice, Some(expected));
            assert!(dropped.is_empty());
        });
    }
    assert_eq!(
        rejected_setting(json!({"tool_choice": {"type": "function"}})),
        "tool_choice.function"
    );
}

#[test]
fn deprecated_functions_are_decoded_as_tools() {
    let body = with(json!({
        "functions": [{"name": "f", "parameters": {}}], "function_call": {"name": "f"},
    }));
    decode(&body, |request, dropped| {
        assert_eq!(request.tools[0].name, "f");
        assert_eq!(request.tool_choice, Some(ToolChoice::One("f".into())));
        assert!(dropped.is_empty());
    });
    decode(&with(json!({"function_call": "none"})), |request, _| {
        assert_eq!(request.tool_choice, Some(ToolChoice::None));
    });
}

#[test]
fn tools_keep_their_kind_and_get_valid_names() {
    let (body, losses) = encoded(
        Format::Responses,
        json!({"model": "m", "input": "A", "tool_choice": {"type": "custom", "name": "b"}, "tools": [
            {"type": "custom", "name": "b", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
            {"type": "function", "name": "f", "strict": true, "parameters": {"type": "object", "properties": {}}},
        ]}),
    );
    assert_eq!(
        body["tools"],
        json!([
            {"type": "custom", "custom": {"name": "b", "format":
                {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}}},
            {"type": "function", "function": {"name": "f", "strict": false,
                "parameters": {"type": "object", "properties": {}}}},
        ])
    );
    assert_eq!(
        body["tool_choice"],
        json!({"type": "custom", "custom": {"name": "b"}})
    );
    assert_eq!(
        losses,
        [(Action::Approximated, FieldLocation::ToolStrict { tool: 1 })]
    );
    let (body, losses) = encoded(
        Format::Native,
        json!({"contents": [{"parts": [{"text": "A"}]}],
            "tools": [{"functionDeclarations": [{"name": "ns.f"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["ns.f"]}}}),
    );
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "function": {"name": "ns_f"}}])
    );
    assert_eq!(body["tool_choice"]["function"]["name"], "ns_f");
    assert_eq!(
        losses,
        [(Action::Approximated, FieldLocation::Tool { tool: 0 })]
    );
}

#[test]
fn a_tool_choice_without_tools_is_left_out() {
    let choice = |mode: &str| {
        let body = json!({"model": "m", "input": "A", "tool_choice": mode,
            "parallel_tool_calls": false});
        let (body, losses) = encoded(Format::Responses, body);
        assert_eq!(body.get("tool_choice"), None);
        assert_eq!(body.get("parallel_tool_calls"), None);
        losses
    };
    assert_eq!(choice("auto"), []);
    assert_eq!(
        choice("required"),
        [setting(Action::Dropped, Setting::ToolChoice)]
    );
}

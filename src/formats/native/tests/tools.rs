//! Tests of encoding tools for an upstream, and of the paths of fields.

use serde_json::{Value, json};

use super::translated::{ReportedLosses, contents, encode};
use crate::formats::FieldPaths as _;
use crate::formats::native::Native;
use crate::model::{Action, FieldLocation, Format, Setting};

fn tools(body: Value) -> (Value, ReportedLosses) {
    let mut whole = json!({"model": "m", "input": "Hi"});
    for (key, value) in body.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let (sent, losses) = encode(Format::Responses, &whole, &[]).unwrap();
    (
        json!({"tools": sent["tools"], "toolConfig": sent["toolConfig"]}),
        losses,
    )
}

#[test]
fn tools_are_encoded() {
    let (sent, losses) = tools(json!({"tools": [
        {"type": "function", "name": "a", "parameters": null, "strict": true},
        {"type": "custom", "name": "b", "description": "Runs it."},
        {"type": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}}
    ]}));
    assert_eq!(
        sent["tools"],
        json!([
            {"functionDeclarations": [
                {"name": "a"},
                {"name": "b", "description": "Runs it.", "parameters": {"type": "OBJECT",
                    "properties": {"input": {"type": "STRING"}}, "required": ["input"]}}
            ]},
            {"googleSearch": {}},
            {"codeExecution": {}}
        ])
    );
    assert_eq!(
        losses,
        [
            (Action::Dropped, "tool 0 strict".to_owned()),
            (Action::Approximated, "tool 1".to_owned())
        ]
    );
}

#[test]
fn a_free_choice_among_some_tools_leaves_out_the_others() {
    let tool = |name| json!({"type": "function", "name": name, "strict": false});
    let choice = |mode| {
        json!({"tools": [tool("a"), tool("b")], "tool_choice": {"type": "allowed_tools",
            "mode": mode, "tools": [{"type": "function", "name": "b"}]}})
    };
    let (sent, losses) = tools(choice("auto"));
    assert_eq!(
        sent,
        json!({"tools": [{"functionDeclarations": [{"name": "b"}]}], "toolConfig": null})
    );
    assert_eq!(losses, [(Action::Approximated, "ToolChoice".to_owned())]);
    let (sent, losses) = tools(choice("required"));
    assert_eq!(
        sent["toolConfig"]["functionCallingConfig"],
        json!({"mode": "ANY", "allowedFunctionNames": ["b"]})
    );
    assert_eq!(losses, []);
}

#[test]
fn the_input_of_a_free_text_tool_is_its_argument() {
    let (sent, _) = contents(json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [
            {"id": "x", "type": "custom", "custom": {"name": "run", "input": "ls -l"}}
        ]}
    ]));
    assert_eq!(
        sent[1]["parts"],
        json!([{"functionCall": {"id": "x", "name": "run", "args": {"input": "ls -l"}}}])
    );
}

#[test]
fn locations_have_paths() {
    let path = |location| Native.path_of(&location);
    let (turn, part) = (Some(3), Some(1));
    assert_eq!(path(FieldLocation::Turn { turn }), "contents[3]");
    assert_eq!(
        path(FieldLocation::Part { turn, part }),
        "contents[3].parts[1]"
    );
    assert_eq!(
        path(FieldLocation::Part { turn: None, part }),
        "systemInstruction.parts[1]"
    );
    assert_eq!(
        path(FieldLocation::Tool { tool: 2 << 16 | 5 }),
        "tools[2].functionDeclarations[5]"
    );
    assert_eq!(
        path(FieldLocation::Setting(Setting::TopK)),
        "generationConfig.topK"
    );
    assert_eq!(path(FieldLocation::Path("a.b".into())), "a.b");
}

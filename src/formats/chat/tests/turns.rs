//! Messages of every role.

use serde_json::{Value, json};

use super::{decode_turns, encoded, messages, part, responses, signature, translate};
use crate::formats::FieldPaths as _;
use crate::formats::chat::Chat;
use crate::model::{
    Action, Arguments, FieldLocation, Format, Issuer, PartKind, Role, Setting, Signature, ToolKind,
    Turn,
};

#[test]
fn roles_keep_their_order() {
    let messages = json!([
        {"role": "system", "content": "A"},
        {"role": "developer", "content": [{"type": "text", "text": "B"}, {"type": "text", "text": "C"}]},
        {"role": "user", "content": "D", "name": "ann"},
        {"role": "assistant", "content": null},
    ]);
    decode_turns(messages, |turns, dropped| {
        let roles: Vec<_> = turns.iter().map(|turn| (turn.role, turn.at)).collect();
        assert_eq!(
            roles,
            [
                (Role::System, Some(0)),
                (Role::Developer, Some(1)),
                (Role::User, Some(2)),
                (Role::Model, Some(3)),
            ]
        );
        assert_eq!(turns[0].parts[0].at, None);
        assert_eq!(turns[1].parts[1].kind, PartKind::Text("C".into()));
        assert_eq!(turns[1].parts[1].at, Some(1));
        assert!(turns[3].parts.is_empty());
        assert_eq!(dropped, ["messages[2].name"]);
    });
}

#[test]
fn calls_and_their_results_are_decoded() {
    let messages = json!([
        {"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"x\":"}},
            {"id": "c2", "type": "custom", "custom": {"name": "shout", "input": "hey"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "18 C"},
        {"role": "tool", "tool_call_id": "c2", "name": "shout", "content": [
            {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "http://x/y"}},
        ]},
        {"role": "assistant", "function_call": {"name": "f", "arguments": ""}},
        {"role": "function", "name": "f", "content": "ok"},
    ]);
    decode_turns(messages, |turns, dropped| {
        let kinds: Vec<_> = turns
            .iter()
            .flat_map(|turn| turn.parts.iter().map(|part| &part.kind))
            .collect();
        let [
            PartKind::Text(text),
            PartKind::Call(look),
            PartKind::Call(shout),
            PartKind::Result(first),
            PartKind::Result(second),
            PartKind::Call(old),
            PartKind::Result(old_result),
        ] = kinds.as_slice()
        else {
            panic!("{kinds:?}");
        };
        assert_eq!(text, "Looking.");
        assert_eq!((look.id.as_deref(), &*look.name), (Some("c1"), "look"));
        assert_eq!(look.arguments, Arguments::Text("{\"x\":".into()));
        assert_eq!(
            (shout.kind, &shout.arguments),
            (ToolKind::Custom, &Arguments::Text("hey".into()))
        );
        assert_eq!((first.id.as_deref(), first.parts.len()), (Some("c1"), 1));
        assert_eq!(
            (second.name.as_deref(), second.parts[1].at),
            (Some("shout"), Some(1))
        );
        assert_eq!((&old.id, &*old.name), (&None, "f"));
        assert_eq!(
            (&old_result.id, old_result.name.as_deref()),
            (&None, Some("f"))
        );
        assert!(turns[1].role == Role::User && turns[4].role == Role::User);
        assert!(dropped.is_empty());
    });
}

#[test]
fn a_response_sent_back_loses_only_its_annotations() {
    let completion = |annotations: Value| {
        json!({"role": "assistant", "content": "Hi", "refusal": null, "annotations": annotations,
            "audio": null, "function_call": null, "tool_calls": null})
    };
    decode_turns(
        json!([completion(json!([])), completion(json!([{}]))]),
        |_, dropped| {
            assert_eq!(dropped, ["messages[1].annotations"]);
        },
    );
}

#[test]
fn a_refusal_is_decoded_from_either_field() {
    let messages = json!([
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "assistant", "content": null, "refusal": "Never."},
    ]);
    decode_turns(messages, |turns, dropped| {
        assert_eq!(turns[0].parts[0].kind, PartKind::Refusal("No.".into()));
        assert_eq!(turns[1].parts[0].kind, PartKind::Refusal("Never.".into()));
        assert!(dropped.is_empty());
    });
}

fn reasoning(
    message: Value,
    check: impl FnOnce(&[(&str, Option<&Signature<'_>>)], &Turn<'_>, Vec<String>),
) {
    decode_turns(json!([message]), |turns, dropped| {
        let reasoning: Vec<_> = turns[0]
            .parts
            .iter()
            .filter_map(|part| match &part.kind {
                PartKind::Reasoning { text, signature } => Some((&**text, signature.as_ref())),
                _ => None,
            })
            .collect();
        check(&reasoning, &turns[0], dropped);
    });
}

#[test]
fn wrapped_signatures_return_to_their_reasoning_and_calls() {
    let wrapped = |issuer| signature(issuer).wrap();
    let message = json!({
        "role": "assistant", "content": "42", "reasoning_content": "Hm.",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "Hm.", "signature": wrapped(Issuer::Thinking), "format": "omniglot-v1", "index": 0},
            {"type": "reasoning.encrypted", "data": wrapped(Issuer::Redacted), "id": null, "format": "omniglot-v1", "index": 1},
            {"type": "reasoning.encrypted", "data": wrapped(Issuer::Native), "id": "c1", "format": "omniglot-v1", "index": 2},
        ],
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    });
    reasoning(message, |reasoning, turn, dropped| {
        let (thinking, redacted) = (signature(Issuer::Thinking), signature(Issuer::Redacted));
        assert_eq!(reasoning, [("Hm.", Some(&thinking)), ("", Some(&redacted))]);
        assert_eq!(turn.parts[2].kind, PartKind::Text("42".into()));
        let PartKind::Call(call) = &turn.parts[3].kind else {
            panic!("{turn:?}");
        };
        assert_eq!(call.signature, Some(signature(Issuer::Native)));
        assert!(dropped.is_empty());
    });
}

#[test]
fn a_foreign_signature_is_dropped() {
    for key in ["reasoning_content", "reasoning"] {
        let mut message = json!({"role": "assistant", "content": "42",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": signature(Issuer::Native).wrap()}]});
        message[key] = json!("Hm.");
        reasoning(message, |reasoning, _, dropped| {
            let native = signature(Issuer::Native);
            assert_eq!(reasoning, [("Hm.", None), ("", Some(&native))]);
            assert!(dropped.is_empty());
        });
    }
    let foreign = json!({"role": "assistant", "reasoning_details": [
        {"type": "reasoning.text", "text": "Hm.", "signature": "EqQBCkYIBRgC"},
        {"type": "reasoning.summary", "summary": "So."},
        {"type": "reasoning.encrypted", "data": "gAAAA", "id": "rs_1"},
        {"type": "reasoning.encrypted", "data": signature(Issuer::Native).wrap(), "id": "gone"},
        {"type": "reasoning.dream", "depth": 1},
    ]});
    reasoning(foreign, |reasoning, _, dropped| {
        assert_eq!(reasoning, [("Hm.", None), ("So.", None)]);
        assert_eq!(
            dropped,
            [
                "messages[0].reasoning_details[2].data",
                "messages[0].reasoning_details[4]",
                "messages[0].reasoning_details[4].depth",
                "messages[0].reasoning_details",
            ]
        );
    });
}

#[test]
fn leading_system_turns_are_joined_and_developer_turns_are_not() {
    let (body, losses) = encoded(
        Format::Responses,
        json!({"model": "m", "instructions": "A", "input": [
            {"role": "system", "content": "B"},
            {"role": "developer", "content": "C"},
            {"role": "user", "content": "D"},
            {"role": "system", "content": "E"},
        ]}),
    );
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": [text("A"), text("B")]},
            {"role": "developer", "content": "C"},
            {"role": "user", "content": "D"},
            {"role": "system", "content": "E"},
        ])
    );
    assert!(losses.is_empty());
}

#[test]
fn empty_texts_are_left_out_and_empty_turns_reported() {
    let (body, losses) = encoded(
        Format::Messages,
        messages(json!([
            {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "A"}]},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "B"},
        ])),
    );
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "A"}, {"role": "user", "content": "B"}])
    );
    let turn = FieldLocation::Turn { turn: Some(1) };
    assert_eq!(losses, [(Action::Approximated, turn)]);
}

#[test]
fn a_prefilled_response_is_sent_and_reported() {
    let turns = json!([{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]);
    let (body, losses) = encoded(Format::Messages, messages(turns.clone()));
    assert_eq!(body["messages"], turns);
    let turn = FieldLocation::Turn { turn: Some(1) };
    assert_eq!(losses, [(Action::Approximated, turn)]);
}

#[test]
fn results_follow_their_calls_and_their_media_come_last() {
    let image = json!({"type": "input_image", "image_url": "https://a/b.png", "detail": "low"});
    let (body, losses) = encoded(
        Format::Responses,
        responses(json!([
            {"role": "user", "content": "Go"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": " "},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
            {"type": "function_call_output", "call_id": "c1", "output": [image]},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
            {"type": "function_call_output", "call_id": "c9", "output": "nobody options"},
            {"role": "user", "content": "And?"},
        ])),
    );
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "(image: see the next user message)"},
            {"role": "tool", "tool_call_id": "c2", "content": "done"},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}},
            ]},
            {"role": "user", "content": "And?"},
        ])
    );
    let actions: Vec<_> = losses.iter().map(|(action, _)| *action).collect();
    assert_eq!(actions, [Action::Approximated, Action::Dropped]);
}

#[test]
fn reasoning_is_left_out_unless_a_tool_loop_needs_it() {
    let turns = json!([
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "thinking", "thinking": "Signed.", "signature": "EqQB"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
    ]);
    let (body, losses) = encoded(Format::Messages, messages(turns.clone()));
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
    assert_eq!(
        losses,
        [(Action::Dropped, part(1, 0)), (Action::Dropped, part(1, 1))]
    );
    let capabilities = [("chat_returns_reasoning", "true")];
    let loops = translate(Format::Messages, &messages(turns.clone()), &capabilities);
    let (body, losses) = loops.expect("encoded");
    assert_eq!(body["messages"][1]["reasoning_content"], "Hm.");
    assert_eq!(losses, [(Action::Dropped, part(1, 1))]);
    let mut over = turns;
    let next = json!({"role": "user", "content": "Next"});
    over.as_array_mut().expect("a list").push(next);
    let (body, _) = translate(Format::Messages, &messages(over), &capabilities).expect("encoded");
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
}

#[test]
fn locations_have_the_paths_of_the_format() {
    for (location, path) in [
        (part(3, 1), "messages[3].content[1]"),
        (FieldLocation::Turn { turn: Some(2) }, "messages[2]"),
        (FieldLocation::Turn { turn: None }, "messages"),
        (FieldLocation::Tool { tool: 2 }, "tools[2]"),
        (FieldLocation::Setting(Setting::Choices), "n"),
        (FieldLocation::Path("logit_bias".into()), "logit_bias"),
    ] {
        assert_eq!(Chat.path_of(&location), path);
    }
}

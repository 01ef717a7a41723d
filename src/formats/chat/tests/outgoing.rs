//! Requests to chat upstreams, row by row of what other formats can say.

use serde_json::{Value, json};

use super::super::paths;
use crate::formats::{Capabilities, RequestHead, UpstreamTarget};
use crate::model::{Action, ApiError, FieldLocation, Format, Losses, Setting};

/// The body for an upstream with these capabilities, and what was reported on the way.
fn translate(
    from: Format,
    body: &Value,
    capabilities: &[(&str, &str)],
) -> Result<(Value, Vec<(Action, FieldLocation)>), ApiError> {
    let mut known = Capabilities::default();
    for (name, value) in capabilities {
        known.set(name, value).expect("a capability");
    }
    let target = UpstreamTarget {
        model: "m",
        stream: false,
        max_output_tokens: None,
        capabilities: &known,
        brand: "google",
        pictures_only: false,
    };
    let bytes = serde_json::to_vec(body).expect("JSON");
    let mut losses = Losses::default();
    let head = RequestHead::default();
    let sent = crate::translate::request(from, Format::Chat, &head, &bytes, &target, &mut losses)?;
    let written = serde_json::from_slice(&sent.body).expect("JSON");
    let lost = losses
        .0
        .into_iter()
        .map(|lost| (lost.action, lost.location));
    Ok((written, lost.collect()))
}

fn taken(from: Format, body: Value) -> (Value, Vec<(Action, FieldLocation)>) {
    translate(from, &body, &[]).unwrap_or_else(|api_error| panic!("{body}: {api_error:?}"))
}

fn refused(from: Format, body: Value) -> FieldLocation {
    let api_error = translate(from, &body, &[]).expect_err("a refusal");
    assert_eq!(api_error.status, 400);
    api_error.location.clone().expect("a place")
}

fn messages(turns: Value) -> Value {
    json!({"model": "m", "max_tokens": 64, "messages": turns})
}

fn native(parts: Value) -> Value {
    json!({"contents": [{"role": "user", "parts": parts}]})
}

fn responses(input: Value) -> Value {
    json!({"model": "m", "input": input})
}

fn part(turn: u32, part: u32) -> FieldLocation {
    FieldLocation::Part {
        turn: Some(turn),
        part: Some(part),
    }
}

const fn setting(action: Action, setting: Setting) -> (Action, FieldLocation) {
    (action, FieldLocation::Setting(setting))
}

#[test]
fn leading_system_turns_are_one_message_and_developers_stay() {
    let (body, lost) = taken(
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
    assert!(lost.is_empty());
}

#[test]
fn a_model_may_want_other_words_for_the_same() {
    let capabilities = [
        ("chat_system_role", "developer"),
        ("chat_max_field", "max_tokens"),
        ("sampling", "false"),
        ("parallel_switch", "false"),
        ("efforts", "low,high"),
    ];
    let body = json!({
        "model": "m", "instructions": "A", "input": "B", "max_output_tokens": 20,
        "temperature": 1, "top_p": 0.5, "parallel_tool_calls": false,
        "reasoning": {"effort": "medium"},
        "tools": [{"type": "function", "name": "f", "strict": false}],
    });
    let (body, lost) = translate(Format::Responses, &body, &capabilities).expect("taken");
    assert_eq!(
        body,
        json!({
            "model": "m", "max_tokens": 20, "reasoning_effort": "low",
            "messages": [{"role": "developer", "content": "A"}, {"role": "user", "content": "B"}],
            "tools": [{"type": "function", "function": {"name": "f", "strict": false}}],
        })
    );
    assert_eq!(
        lost,
        [
            setting(Action::Dropped, Setting::ParallelTools),
            setting(Action::Dropped, Setting::Temperature),
            setting(Action::Dropped, Setting::TopP),
            setting(Action::Approximated, Setting::Thinking),
        ]
    );
}

#[test]
fn empty_words_are_left_out_and_empty_turns_reported() {
    let (body, lost) = taken(
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
    assert_eq!(lost, [(Action::Approximated, turn)]);
}

#[test]
fn an_answer_that_was_begun_is_sent_but_not_continued() {
    let turns = json!([{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]);
    let (body, lost) = taken(Format::Messages, messages(turns.clone()));
    assert_eq!(body["messages"], turns);
    let turn = FieldLocation::Turn { turn: Some(1) };
    assert_eq!(lost, [(Action::Approximated, turn)]);
}

#[test]
fn results_follow_their_calls_and_their_media_come_last() {
    let image = json!({"type": "input_image", "image_url": "https://a/b.png", "detail": "low"});
    let (body, lost) = taken(
        Format::Responses,
        responses(json!([
            {"role": "user", "content": "Go"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": " "},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
            {"type": "function_call_output", "call_id": "c1", "output": [image]},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
            {"type": "function_call_output", "call_id": "c9", "output": "nobody asked"},
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
            {"role": "tool", "tool_call_id": "c1", "content": ""},
            {"role": "tool", "tool_call_id": "c2", "content": "done"},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}},
            ]},
            {"role": "user", "content": "And?"},
        ])
    );
    let actions: Vec<_> = lost.iter().map(|(action, _)| *action).collect();
    assert_eq!(actions, [Action::Approximated, Action::Dropped]);
}

#[test]
fn documents_become_files_or_words() {
    let (body, lost) = taken(
        Format::Messages,
        messages(json!([{"role": "user", "content": [
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
            {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        ]}])),
    );
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "file.pdf"}},
            {"type": "text", "text": "words"},
        ])
    );
    assert_eq!(
        lost,
        [
            (Action::Added, part(0, 0)),
            (Action::Approximated, part(0, 1))
        ]
    );
    let by_id = json!([{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]);
    let (body, _) = taken(Format::Responses, responses(by_id));
    assert_eq!(
        body["messages"][0]["content"],
        json!([{"type": "file", "file": {"file_id": "file-1"}}])
    );
}

#[test]
fn media_without_a_counterpart_are_refused() {
    for data in [
        json!({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}),
        json!({"inlineData": {"mimeType": "audio/flac", "data": "AAAA"}}),
        json!({"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/b.pdf"}}),
        json!({"fileData": {"fileUri": "https://a.example/b.mp4"}}),
    ] {
        let place = refused(Format::Native, native(json!([{"text": "See"}, data])));
        assert_eq!(place, part(0, 1));
    }
    let picture =
        json!([{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}]);
    assert_eq!(refused(Format::Responses, responses(picture)), part(0, 0));
    let code = json!({"contents": [{"parts": [{"text": "A"}]}], "tools": [{"codeExecution": {}}]});
    let place = refused(Format::Native, code);
    assert_eq!(place, FieldLocation::Setting(Setting::CodeExecution));
}

#[test]
fn sound_is_known_by_any_of_its_names() {
    for (mime, format) in [
        ("audio/x-wav", "wav"),
        ("audio/wave", "wav"),
        ("audio/mp3", "mp3"),
    ] {
        let inline = json!([{"inlineData": {"mimeType": mime, "data": "AAAA"}}]);
        let (body, _) = taken(Format::Native, native(inline));
        let audio = &body["messages"][0]["content"][0]["input_audio"];
        assert_eq!(audio, &json!({"data": "AAAA", "format": format}));
    }
}

#[test]
fn proofs_and_thoughts_stay_behind_unless_a_loop_needs_them() {
    let turns = json!([
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "thinking", "thinking": "Signed.", "signature": "EqQB"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
    ]);
    let (body, lost) = taken(Format::Messages, messages(turns.clone()));
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
    assert_eq!(
        lost,
        [(Action::Dropped, part(1, 0)), (Action::Dropped, part(1, 1))]
    );
    let capabilities = [("chat_returns_reasoning", "true")];
    let loops = translate(Format::Messages, &messages(turns.clone()), &capabilities);
    let (body, lost) = loops.expect("taken");
    assert_eq!(body["messages"][1]["reasoning_content"], "Hm.");
    assert_eq!(lost, [(Action::Dropped, part(1, 1))]);
    let mut over = turns;
    let next = json!({"role": "user", "content": "Next"});
    over.as_array_mut().expect("a list").push(next);
    let (body, _) = translate(Format::Messages, &messages(over), &capabilities).expect("taken");
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
}

#[test]
fn depth_is_said_in_words() {
    let effort = |config: Value| {
        let body = json!({"contents": [{"parts": [{"text": "A"}]}],
            "generationConfig": {"thinkingConfig": config}});
        let (body, lost) = taken(Format::Native, body);
        (body["reasoning_effort"].clone(), lost)
    };
    let about = || vec![setting(Action::Approximated, Setting::Thinking)];
    assert_eq!(
        effort(json!({"thinkingBudget": 0})),
        (json!("none"), vec![])
    );
    assert_eq!(effort(json!({"thinkingBudget": -1})), (Value::Null, vec![]));
    assert_eq!(
        effort(json!({"thinkingBudget": 1024})),
        (json!("low"), about())
    );
    assert_eq!(
        effort(json!({"thinkingBudget": 8193})),
        (json!("high"), about())
    );
    let off = json!({"model": "m", "input": "A", "reasoning": {"effort": "none"}});
    let (body, lost) = translate(Format::Responses, &off, &[("efforts", "low,high")]).expect("ok");
    assert_eq!((&body["reasoning_effort"], lost), (&json!("low"), about()));
}

#[test]
fn tools_keep_their_kind_and_get_legal_names() {
    let (body, lost) = taken(
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
        lost,
        [(Action::Approximated, FieldLocation::ToolStrict { tool: 1 })]
    );
    let (body, lost) = taken(
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
        lost,
        [(Action::Approximated, FieldLocation::Tool { tool: 0 })]
    );
}

#[test]
fn a_choice_among_no_tools_is_not_sent() {
    let choice = |word: &str| {
        let body = json!({"model": "m", "input": "A", "tool_choice": word,
            "parallel_tool_calls": false});
        let (body, lost) = taken(Format::Responses, body);
        assert_eq!(body.get("tool_choice"), None);
        assert_eq!(body.get("parallel_tool_calls"), None);
        lost
    };
    assert_eq!(choice("auto"), []);
    assert_eq!(
        choice("required"),
        [setting(Action::Dropped, Setting::ToolChoice)]
    );
}

#[test]
fn shapes_are_strict_only_where_they_may_be() {
    let shape = |mime: &str, schema: Value| {
        let body = json!({"contents": [{"parts": [{"text": "A"}]}],
            "generationConfig": {"responseMimeType": mime, "responseJsonSchema": schema}});
        let (body, lost) = taken(Format::Native, body);
        let actions: Vec<_> = lost.into_iter().map(|(action, _)| action).collect();
        (body["response_format"].clone(), actions)
    };
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let (format, lost) = shape("application/json", closed.clone());
    assert_eq!(
        format,
        json!({"type": "json_schema", "json_schema":
            {"name": "response", "schema": closed, "strict": true}})
    );
    assert_eq!(lost, [Action::Added]);
    let words = json!({"type": "string", "enum": ["a", "b"]});
    let (format, lost) = shape("text/x.enum", words.clone());
    assert_eq!(format["json_schema"]["schema"], words);
    assert_eq!(lost, [Action::Approximated, Action::Added]);
}

#[test]
fn search_says_where_and_drops_the_domains() {
    let (body, lost) = taken(
        Format::Messages,
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "A"}],
            "service_tier": "standard_only", "metadata": {"user_id": "u"},
            "tools": [{"type": "web_search_20250305", "name": "web_search",
                "allowed_domains": ["a.example"],
                "user_location": {"type": "approximate", "city": "Rome"}}]}),
    );
    assert_eq!(
        body["web_search_options"],
        json!({"user_location": {"type": "approximate", "approximate": {"city": "Rome"}}})
    );
    assert_eq!(
        (&body["service_tier"], &body["user"]),
        (&json!("default"), &json!("u"))
    );
    assert_eq!(lost, [setting(Action::Dropped, Setting::Search)]);
}

#[test]
fn places_are_told_in_the_words_of_the_format() {
    for (place, path) in [
        (part(3, 1), "messages[3].content[1]"),
        (FieldLocation::Turn { turn: Some(2) }, "messages[2]"),
        (FieldLocation::Turn { turn: None }, "messages"),
        (FieldLocation::Tool { tool: 2 }, "tools[2]"),
        (FieldLocation::Setting(Setting::Choices), "n"),
        (FieldLocation::Path("logit_bias".into()), "logit_bias"),
    ] {
        assert_eq!(paths::path_of(&place), path);
    }
}

#[test]
fn the_limit_of_an_answer_keeps_to_the_range_of_the_format() {
    let turns = json!([{"role": "user", "content": "A"}]);
    for (asked, sent) in [(0, 1), (u64::from(u32::MAX) + 1, u32::MAX)] {
        let body = json!({"model": "m", "max_tokens": asked, "messages": turns});
        let (written, lost) = taken(Format::Messages, body);
        assert_eq!(written["max_completion_tokens"], sent);
        assert_eq!(lost, [setting(Action::Approximated, Setting::MaxTokens)]);
    }
}

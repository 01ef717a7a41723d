//! Requests for an upstream of this format, from clients of the others.

use serde_json::{Value, json};

use super::*;
use crate::formats::{Capabilities, RequestHead};
use crate::model::{Action, Format};

fn attempt(
    from: Format,
    input: &Value,
    flags: &[(&str, &str)],
) -> Result<(Value, Vec<(Action, String)>), ApiError> {
    let mut capabilities = Capabilities::default();
    for (name, value) in flags {
        capabilities.set(name, value).expect("a capability");
    }
    let target = UpstreamTarget {
        model: "m",
        stream: false,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "google",
        images_only: false,
    };
    let mut losses = Losses::default();
    let body = serde_json::to_vec(input).expect("JSON");
    let head = RequestHead::default();
    let sent =
        crate::translate::request(from, Format::Responses, &head, &body, &target, &mut losses)?;
    let losses = losses.0.iter();
    let losses = losses.map(|loss| (loss.action, from.codec().path_of(&loss.location)));
    Ok((
        serde_json::from_slice(&sent.body).expect("JSON"),
        losses.collect(),
    ))
}

fn chat(fields: Value) -> (Value, Vec<(Action, String)>) {
    attempt(Format::Chat, &with_messages(fields), &[]).expect("a legal request")
}

fn with_messages(mut fields: Value) -> Value {
    if fields["messages"].is_null() {
        fields["messages"] = json!([{"role": "user", "content": "Hi"}]);
    }
    fields["model"] = json!("m");
    fields
}

#[test]
fn only_the_leading_system_turns_become_instructions() {
    let turn = |role: &str, content: &str| json!({"role": role, "content": content});
    let (body, losses) = chat(json!({"messages": [
        turn("system", "A"), turn("system", "B"), turn("developer", "C"),
        turn("user", "D"), turn("system", "E"),
    ]}));
    assert_eq!(body["instructions"], "A\n\nB");
    let message =
        |role: &str, content: &str| json!({"type": "message", "role": role, "content": content});
    let expected = [("developer", "C"), ("user", "D"), ("system", "E")];
    assert_eq!(
        body["input"],
        json!(expected.map(|(role, content)| message(role, content)))
    );
    assert_eq!(losses, []);
    let (body, _) = chat(json!({"messages": [turn("system", "A")]}));
    assert_eq!(body["instructions"], Value::Null);
    assert_eq!(body["input"], json!([message("system", "A")]));
}

#[test]
fn empty_turns_and_empty_parts_are_left_out() {
    let (body, losses) = chat(json!({"messages": [
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "A"}]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": [{"type": "text", "text": "B"}, {"type": "refusal", "refusal": "C"}]},
    ]}));
    assert_eq!(
        body["input"],
        json!([
            {"type": "message", "role": "user", "content": "A"},
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [
                {"type": "output_text", "text": "B", "annotations": []},
                {"type": "refusal", "refusal": "C"},
            ]},
        ])
    );
    // The empty turn, and the last one: the model will not go on from it.
    let losses: Vec<_> = losses.iter().map(|(action, _)| *action).collect();
    assert_eq!(losses, [Action::Approximated; 2]);
}

#[test]
fn calls_and_results_are_matched() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": " "}});
    let (body, losses) = chat(json!({"messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "So?"},
    ]}));
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str, output: &str| json!({"type": "function_call_output", "call_id": id, "output": output});
    assert_eq!(
        body["input"].as_array().expect("items")[1..5],
        [
            call("a"),
            call("b"),
            output("b", "1"),
            output("a", "(no result)")
        ]
    );
    let actions: Vec<_> = losses.iter().map(|(action, _)| *action).collect();
    assert_eq!(actions, [Action::Approximated, Action::Dropped]);
}

#[test]
fn calls_without_an_id_get_one() {
    let (body, losses) = chat(json!({"messages": [
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ]}));
    let id = body["input"][0]["call_id"].as_str().expect("an id");
    assert!(id.starts_with("call_"), "{id}");
    assert_eq!(body["input"][1]["call_id"], id);
    assert_eq!(losses, []);
}

#[test]
fn custom_tools_stay_custom() {
    let grammar = json!({"syntax": "lark", "definition": "start: \"a\""});
    let (body, losses) = chat(json!({
        "messages": [
            {"role": "assistant", "tool_calls": [
                {"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "x"},
        ],
        "tools": [
            {"type": "custom", "custom": {"name": "sh", "format": {"type": "grammar", "grammar": grammar}}},
            {"type": "function", "function": {"name": "f"}},
        ],
        "tool_choice": {"type": "custom", "custom": {"name": "sh"}},
        "parallel_tool_calls": true,
    }));
    assert_eq!(
        body["input"],
        json!([
            {"type": "custom_tool_call", "call_id": "a", "name": "sh", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "x"},
        ])
    );
    assert_eq!(
        body["tools"],
        json!([
            {"type": "custom", "name": "sh", "format":
                {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}},
            {"type": "function", "name": "f", "strict": false,
                "parameters": {"type": "object", "properties": {}}},
        ])
    );
    assert_eq!(body["tool_choice"], json!({"type": "custom", "name": "sh"}));
    assert_eq!(body.get("parallel_tool_calls"), None);
    assert_eq!(losses, []);
}

#[test]
fn illegal_names_change_everywhere() {
    let (body, losses) = attempt(
        Format::Native,
        &json!({
            "contents": [{"role": "model", "parts": [{"functionCall": {"name": "a.b"}}]},
                {"parts": [{"functionResponse": {"name": "a.b", "response": {}}}]}],
            "tools": [{"functionDeclarations": [{"name": "a.b"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a.b"]}},
        }),
        &[],
    )
    .expect("a legal request");
    for named in [&body["input"][0], &body["tools"][0], &body["tool_choice"]] {
        assert_eq!(named["name"], "a_b");
    }
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].0, Action::Approximated);
}

#[test]
fn a_strict_schema_must_meet_the_rules() {
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tool = |schema: &Value| {
        json!({"type": "function",
        "function": {"name": "f", "strict": true, "parameters": schema}})
    };
    let (body, losses) = chat(json!({"tools": [tool(&open)]}));
    assert_eq!(body["tools"][0]["strict"], false);
    assert_eq!(losses.len(), 1);
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let (body, losses) = chat(json!({"tools": [tool(&closed)]}));
    assert_eq!(body["tools"][0]["strict"], true);
    assert_eq!(losses, []);
    let format = |strict: Value| {
        json!({"response_format": {"type": "json_schema",
        "json_schema": {"name": "n", "schema": open, "strict": strict}}})
    };
    let (body, losses) = chat(format(json!(true)));
    assert_eq!(body["text"]["format"]["strict"], false);
    assert_eq!(losses.len(), 1);
    let (body, losses) = chat(format(Value::Null));
    assert_eq!(body["text"]["format"].get("strict"), None);
    assert_eq!(losses, []);
}

#[test]
fn shapes_and_verbosity_are_settings_of_the_text() {
    let (body, _) = chat(json!({"response_format": {"type": "json_object"}, "verbosity": "low"}));
    assert_eq!(
        body["text"],
        json!({"format": {"type": "json_object"}, "verbosity": "low"})
    );
    let schema = json!({"type": "STRING", "enum": ["a", "b"]});
    let request = json!({"contents": [{"parts": [{"text": "Hi"}]}],
        "generationConfig": {"responseMimeType": "text/x.enum", "responseSchema": schema}});
    let (body, losses) = attempt(Format::Native, &request, &[]).expect("a legal request");
    let schema = json!({"type": "string", "enum": ["a", "b"]});
    assert_eq!(body["text"]["format"]["schema"], schema);
    assert_eq!(body["text"]["format"]["name"], "response");
    let losses: Vec<_> = losses.iter().map(|(action, _)| *action).collect();
    assert_eq!(losses, [Action::Approximated, Action::Added]);
}

#[test]
fn efforts_are_those_the_model_knows() {
    let effort = |requested: &str, flags: &[(&str, &str)]| {
        let request = with_messages(json!({"reasoning_effort": requested}));
        let (body, losses) = attempt(Format::Chat, &request, flags).expect("a legal request");
        (body["reasoning"]["effort"].clone(), losses.len())
    };
    assert_eq!(effort("xhigh", &[]), (json!("xhigh"), 0));
    let some = [("efforts", "low,high")];
    assert_eq!(effort("max", &some), (json!("high"), 1));
    assert_eq!(effort("minimal", &some), (json!("low"), 1));
    assert_eq!(effort("none", &some), (json!("low"), 1));
    assert_eq!(
        effort("none", &[("efforts", "none,low")]),
        (json!("none"), 0)
    );
}

#[test]
fn budgets_become_efforts_and_adaptive_thinking_leaves_the_choice() {
    let thinking = |thinking: Value| {
        let request = json!({"model": "m", "max_tokens": 99, "thinking": thinking,
            "messages": [{"role": "user", "content": "Hi"}]});
        let (body, losses) = attempt(Format::Messages, &request, &[]).expect("a legal request");
        (
            body["reasoning"].clone(),
            body["include"].clone(),
            losses.len(),
        )
    };
    let encrypted = json!(["reasoning.encrypted_content"]);
    for (tokens, effort) in [(1024, "low"), (1025, "medium"), (8193, "high")] {
        let expected = json!({"effort": effort, "summary": "auto"});
        let budget = json!({"type": "enabled", "budget_tokens": tokens});
        assert_eq!(thinking(budget), (expected, encrypted.clone(), 1));
    }
    let shown = json!({"summary": "auto"});
    assert_eq!(
        thinking(json!({"type": "adaptive"})),
        (shown, encrypted.clone(), 0)
    );
    assert_eq!(
        thinking(json!({"type": "adaptive", "display": "omitted"})),
        (Value::Null, encrypted, 0)
    );
}

#[test]
fn models_without_sampling_or_parallel_switch_do_not_get_them() {
    let request = with_messages(json!({"temperature": 0.5, "top_p": 0.5, "n": 1,
        "parallel_tool_calls": false}));
    let (body, losses) = attempt(Format::Chat, &request, &[]).expect("a legal request");
    assert_eq!(
        (&body["temperature"], &body["parallel_tool_calls"]),
        (&json!(0.5), &json!(false))
    );
    assert_eq!(losses, []);
    let flags = [("sampling", "false"), ("parallel_switch", "false")];
    let (body, losses) = attempt(Format::Chat, &request, &flags).expect("a legal request");
    for key in ["temperature", "top_p", "parallel_tool_calls"] {
        assert_eq!(body.get(key), None);
    }
    assert_eq!(losses.len(), 3);
}

#[test]
fn hosted_tools_and_labels_have_their_counterparts() {
    let (body, losses) = chat(json!({
        "web_search_options": {"search_context_size": "low", "user_location":
            {"type": "approximate", "approximate": {"city": "Rome"}}},
        "modalities": ["text", "image"],
        "user": "u", "prompt_cache_key": "k", "service_tier": "flex", "metadata": {"a": "b"},
        "logprobs": true,
    }));
    assert_eq!(
        body["tools"],
        json!([
            {"type": "web_search", "search_context_size": "low",
                "user_location": {"type": "approximate", "city": "Rome"}},
            {"type": "image_generation"},
        ])
    );
    assert_eq!(body["include"], json!(["message.output_text.logprobs"]));
    let labels = ["user", "prompt_cache_key", "service_tier"].map(|key| body[key].clone());
    assert_eq!(labels, [json!("u"), json!("k"), json!("flex")]);
    assert_eq!(body["metadata"], json!({"a": "b"}));
    assert_eq!(losses, []);
    let request =
        json!({"contents": [{"parts": [{"text": "Hi"}]}], "tools": [{"codeExecution": {}}]});
    let (body, _) = attempt(Format::Native, &request, &[]).expect("a legal request");
    assert_eq!(
        body["tools"],
        json!([{"type": "code_interpreter", "container": {"type": "auto"}}])
    );
}

#[test]
fn signatures_go_back_to_their_own_format_only() {
    let own = crate::model::Signature {
        issuer: crate::model::Issuer::Responses,
        data: "rs_1\nxyz".into(),
    };
    let foreign = crate::model::Signature {
        issuer: crate::model::Issuer::Native,
        ..own.clone()
    };
    let detail = |id: Value, signature: &crate::model::Signature<'_>| {
        json!({"type": "reasoning.encrypted",
        "id": id, "data": signature.wrap()})
    };
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let (body, losses) = chat(json!({"messages": [
        {"role": "assistant", "tool_calls": [call],
            "reasoning_details": [detail(Value::Null, &foreign), detail(json!("a"), &own)]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        // Nothing follows this one.
        {"role": "assistant", "content": "", "reasoning_details": [detail(Value::Null, &own)]},
        {"role": "user", "content": "Hi"},
    ]}));
    let items = body["input"].as_array().expect("items").iter();
    let kinds: Vec<_> = items.map(|item| item["type"].clone()).collect();
    assert_eq!(
        kinds,
        [
            "reasoning",
            "function_call",
            "function_call_output",
            "message"
        ]
    );
    assert_eq!(
        body["input"][0],
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"})
    );
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let actions: Vec<_> = losses.iter().map(|(action, _)| *action).collect();
    assert_eq!(actions, [Action::Dropped, Action::Dropped]);
}

#[test]
fn unsupported_media_are_refused_with_the_path_of_the_client() {
    let request = json!({"contents": [{"parts": [{"text": "Hi"},
        {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}]}]});
    let api_error = attempt(Format::Native, &request, &[]).expect_err("no sound here");
    assert_eq!(api_error.status, 400);
    let location = FieldLocation::Part {
        turn: Some(0),
        part: Some(1),
    };
    assert_eq!(
        api_error.param,
        Some(Format::Native.codec().path_of(&location))
    );
}

#[test]
fn images_of_the_model_are_items_of_their_own() {
    let request = json!({"contents": [
        {"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
        {"parts": [{"text": "Bluer."}]}]});
    let (body, losses) = attempt(Format::Native, &request, &[]).expect("a legal request");
    assert_eq!(
        body["input"][0],
        json!({"type": "image_generation_call", "id": "ig_0", "result": "AAAA", "status": "completed"})
    );
    assert_eq!(losses, []);
}

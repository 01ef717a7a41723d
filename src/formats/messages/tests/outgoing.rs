//! Requests of clients of other formats, as an upstream of this one gets them.

use serde_json::{Value, json};

use crate::formats::{Capabilities, RequestHead, UpstreamTarget};
use crate::model::{Action, ApiError, FieldLocation, Format, Losses, Setting};
use crate::translate;

type Loss = Vec<(Action, String)>;

fn send(
    from: Format,
    body: &Value,
    flags: &[(&str, &str)],
    limit: Option<u64>,
) -> Result<(Value, Loss), ApiError> {
    let mut capabilities = Capabilities::default();
    for (name, value) in flags {
        capabilities.set(name, value).expect("a flag");
    }
    let target = UpstreamTarget {
        model: "m-1",
        stream: false,
        max_output_tokens: limit,
        capabilities: &capabilities,
        brand: "vendor",
        pictures_only: false,
    };
    let mut losses = Losses::default();
    let body = body.to_string();
    let head = RequestHead {
        path_model: Some("m-1"),
        stream: false,
        text_only: false,
        ..RequestHead::default()
    };
    let sent = translate::request(
        from,
        Format::Messages,
        &head,
        body.as_bytes(),
        &target,
        &mut losses,
    )?;
    let losses = losses.0.iter();
    let losses = losses.map(|lost| (lost.action, from.codec().path_of(&lost.location)));
    Ok((
        serde_json::from_slice(&sent.body).expect("JSON"),
        losses.collect(),
    ))
}

/// A chat request with these fields beside the usual ones.
fn chat(fields: Value) -> Value {
    let mut body = json!({
        "model": "m", "max_tokens": 5000, "messages": [{"role": "user", "content": "Hi"}],
    });
    let all = body.as_object_mut().expect("an object");
    for (key, value) in fields.as_object().expect("an object") {
        all.insert(key.clone(), value.clone());
    }
    body
}

fn sent(fields: Value, flags: &[(&str, &str)]) -> (Value, Vec<Action>) {
    let (body, lost) = send(Format::Chat, &chat(fields), flags, None).expect("a good request");
    (body, lost.into_iter().map(|(action, _)| action).collect())
}

fn refused(from: Format, body: &Value, flags: &[(&str, &str)]) -> u16 {
    let api_error = send(from, body, flags, None).expect_err("a bad request");
    api_error.status
}

const BUDGET: (&str, &str) = ("messages_thinking", "budget");

fn assistant_call(id: &str, arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}]})
}

#[test]
fn efforts_become_words_or_budgets() {
    for (effort, word, budget) in [
        ("minimal", "low", 1024),
        ("low", "low", 1024),
        ("medium", "medium", 8192),
        ("high", "high", 24_576),
        ("xhigh", "xhigh", 32_768),
        ("max", "max", 32_768),
    ] {
        let fields = json!({"reasoning_effort": effort, "max_tokens": 50_000});
        let (body, lost) = sent(fields.clone(), &[]);
        assert_eq!(body["thinking"], json!({"type": "adaptive"}));
        assert_eq!(body["output_config"], json!({"effort": word}));
        assert_eq!(lost, []);
        let (body, lost) = sent(fields, &[BUDGET]);
        let enabled = json!({"type": "enabled", "budget_tokens": budget});
        assert_eq!(body["thinking"], enabled);
        assert_eq!(body.get("output_config"), None);
        assert_eq!(lost, []);
    }
}

#[test]
fn an_effort_the_model_does_not_know_becomes_the_nearest() {
    let flags = [("efforts", "low,medium,high")];
    let (body, lost) = sent(json!({"reasoning_effort": "max"}), &flags);
    assert_eq!(body["output_config"]["effort"], "high");
    assert_eq!(lost, [Action::Approximated]);
    // These models cannot stop thinking either.
    let (body, lost) = sent(json!({"reasoning_effort": "none"}), &flags);
    assert_eq!(body["output_config"]["effort"], "low");
    assert_eq!(lost, [Action::Approximated]);
}

#[test]
fn a_budget_leaves_room_for_the_answer() {
    let think = |max: Value| {
        let mut body = chat(json!({"reasoning_effort": "medium"}));
        body["max_tokens"] = max;
        let (body, lost) = send(Format::Chat, &body, &[BUDGET], None).expect("a good request");
        let actions: Vec<Action> = lost.into_iter().map(|(action, _)| action).collect();
        (
            body["max_tokens"].clone(),
            body["thinking"].clone(),
            actions,
        )
    };
    let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    assert_eq!(
        think(Value::Null),
        (json!(12_288), enabled(8192), vec![Action::Added])
    );
    assert_eq!(
        think(json!(4096)),
        (json!(4096), enabled(3072), vec![Action::Approximated])
    );
    let disabled = json!({"type": "disabled"});
    assert_eq!(
        think(json!(2000)),
        (json!(2000), disabled, vec![Action::Dropped])
    );
}

#[test]
fn budgets_become_words_where_the_model_wants_words() {
    for (budget, word) in [(512, "low"), (4096, "medium"), (9000, "high")] {
        let body = json!({
            "contents": [{"parts": [{"text": "Hi"}]}],
            "generationConfig": {"maxOutputTokens": 10_000,
                "thinkingConfig": {"thinkingBudget": budget, "includeThoughts": true}},
        });
        let (sent, lost) = send(Format::Native, &body, &[], None).expect("a good request");
        assert_eq!(
            sent["thinking"],
            json!({"type": "adaptive", "display": "summarized"})
        );
        assert_eq!(sent["output_config"]["effort"], word);
        assert_eq!(lost.len(), 1);
        let (sent, _) = send(Format::Native, &body, &[BUDGET], None).expect("a good request");
        let tokens = budget.clamp(1024, 8976);
        assert_eq!(sent["thinking"]["budget_tokens"], tokens);
    }
}

#[test]
fn a_tool_loop_without_its_thoughts_goes_on_without_thinking() {
    let fields = json!({
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "messages": [
            {"role": "user", "content": "Hi"},
            assistant_call("c1", "{}"),
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
    });
    let (body, lost) = sent(fields.clone(), &[BUDGET]);
    assert_eq!(body["thinking"], json!({"type": "disabled"}));
    assert_eq!(lost, [Action::Dropped]);
    let (body, lost) = sent(fields, &[]);
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(lost, []);
}

#[test]
fn the_model_catalogue_knows_the_limit() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let (sent, lost) = send(Format::Chat, &body, &[], Some(64_000)).expect("a good request");
    assert_eq!(sent["max_tokens"], 64_000);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].0, Action::Added);
}

#[test]
fn calls_and_results_find_each_other() {
    let (body, lost) = sent(
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
    let count = |wanted| lost.iter().filter(|action| **action == wanted).count();
    assert_eq!(count(Action::Dropped), 2);
    // The tool that was called was never declared.
    assert_eq!(count(Action::Added), 1);
    assert_eq!(body["tools"][0]["name"], "f");
}

#[test]
fn calls_at_the_very_end_are_answered_too() {
    let (body, _) = sent(
        json!({"messages": [{"role": "user", "content": "Hi"}, assistant_call("c", "{}")]}),
        &[("messages_prefill", "false")],
    );
    assert_eq!(body["messages"][2]["content"][0]["content"], "(no result)");
}

#[test]
fn functions_of_old_need_no_ids() {
    let (body, _) = sent(
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
fn words_of_the_model_at_the_end_need_a_model_that_goes_on_from_them() {
    let body = chat(json!({"messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well,"}]}));
    assert_eq!(
        refused(Format::Chat, &body, &[("messages_prefill", "false")]),
        400
    );
    assert!(send(Format::Chat, &body, &[], None).is_ok());
}

#[test]
fn system_turns_stay_only_between_user_and_model() {
    let turns = |roles: &[&str]| {
        let turns: Vec<Value> = roles
            .iter()
            .map(|role| json!({"role": role, "content": role}))
            .collect();
        let (body, lost) = sent(
            json!({"messages": turns}),
            &[("messages_mid_system", "true")],
        );
        let kept = body["messages"].as_array().expect("turns").iter();
        let kept: Vec<String> = kept.map(|turn| turn["role"].to_string()).collect();
        (kept.join(" ").replace('"', ""), lost.len())
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
fn media_the_format_lacks_are_refused() {
    let part = |part: Value| chat(json!({"messages": [{"role": "user", "content": [part]}]}));
    let image = |url: &str| part(json!({"type": "image_url", "image_url": {"url": url}}));
    let sound = json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}});
    let file = json!({"type": "file", "file": {"file_id": "file-1"}});
    for body in [
        image("data:image/tiff;base64,AAAA"),
        part(sound),
        part(file),
    ] {
        let api_error = send(Format::Chat, &body, &[], None).expect_err("refused");
        assert_eq!(api_error.status, 400);
        let place = FieldLocation::Part {
            turn: Some(0),
            part: Some(0),
        };
        assert_eq!(api_error.location, Some(place));
    }
    let pictures = chat(json!({"modalities": ["text", "image"]}));
    assert_eq!(refused(Format::Chat, &pictures, &[]), 400);
}

#[test]
fn media_are_spelled_in_the_formats_own_way() {
    let body = json!({"contents": [{"parts": [
        {"inlineData": {"mimeType": "image/jpg", "data": "-_8"}},
        {"inlineData": {"mimeType": "text/csv", "data": "YSxi"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a"}},
    ]}], "generationConfig": {"maxOutputTokens": 9}});
    let (sent, lost) = send(Format::Native, &body, &[], None).expect("a good request");
    assert_eq!(
        sent["messages"][0]["content"],
        json!([
            {"type": "image",
             "source": {"type": "base64", "media_type": "image/jpeg", "data": "+/8="}},
            {"type": "document",
             "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a"}},
        ])
    );
    assert_eq!(lost, []);
    let detailed = json!({"type": "image_url",
        "image_url": {"url": "https://example.com/a.png", "detail": "high"}});
    let (_, lost) = sent_parts(detailed);
    assert_eq!(lost, [Action::Dropped]);
    let text = json!({"type": "file",
        "file": {"filename": "n.md", "file_data": "data:text/markdown;base64,IyBI"}});
    let (content, _) = sent_parts(text);
    assert_eq!(
        content[0],
        json!({"type": "document", "title": "n.md",
            "source": {"type": "text", "media_type": "text/plain", "data": "# H"}})
    );
}

fn sent_parts(part: Value) -> (Value, Vec<Action>) {
    let (body, lost) = sent(
        json!({"messages": [{"role": "user", "content": [part]}]}),
        &[],
    );
    (body["messages"][0]["content"].clone(), lost)
}

#[test]
fn tools_keep_what_the_format_can_say_of_them() {
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let function = |name: &str, parameters: Value, strict: bool| {
        json!({"type": "function",
            "function": {"name": name, "parameters": parameters, "strict": strict}})
    };
    let (body, lost) = sent(
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
    assert_eq!(lost, [Action::Dropped, Action::Approximated]);
    let one_at_a_time = json!({"type": "auto", "disable_parallel_tool_use": true});
    assert_eq!(body["tool_choice"], one_at_a_time);
}

#[test]
fn a_choice_needs_something_to_choose_from() {
    let (body, lost) = sent(
        json!({"tool_choice": "none", "parallel_tool_calls": false}),
        &[],
    );
    assert_eq!(body.get("tool_choice"), None);
    assert_eq!(lost, []);
    let (body, lost) = sent(json!({"tool_choice": "required"}), &[]);
    assert_eq!(body.get("tool_choice"), None);
    assert_eq!(lost, [Action::Dropped]);
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let none = json!({"tools": tools, "tool_choice": "none", "parallel_tool_calls": false});
    assert_eq!(sent(none, &[]).0["tool_choice"], json!({"type": "none"}));
}

#[test]
fn names_are_rewritten_everywhere_alike() {
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
    let (sent, lost) = send(Format::Native, &body, &[], None).expect("a good request");
    assert_eq!(sent["tools"][0]["name"], "a_b");
    assert_eq!(sent["messages"][1]["content"][0]["name"], "a_b");
    assert_eq!(sent["tool_choice"], json!({"type": "tool", "name": "a_b"}));
    assert_eq!(lost.len(), 1);
}

#[test]
fn the_web_may_be_searched_from_somewhere() {
    let options = json!({"search_context_size": "high", "user_location":
        {"type": "approximate", "approximate": {"city": "Bern", "country": "CH"}}});
    let fields = json!({"web_search_options": options});
    let (body, lost) = sent(fields.clone(), &[]);
    assert_eq!(
        body["tools"],
        json!([{"type": "web_search_20250305", "name": "web_search",
            "user_location": {"type": "approximate", "city": "Bern", "country": "CH"}}])
    );
    assert_eq!(lost, [Action::Dropped]);
    let flags = [("messages_web_search", "none")];
    assert_eq!(refused(Format::Chat, &chat(fields), &flags), 400);
}

#[test]
fn code_may_be_run() {
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}],
        "tools": [{"codeExecution": {}}], "generationConfig": {"maxOutputTokens": 9}});
    let (sent, _) = send(Format::Native, &body, &[], None).expect("a good request");
    assert_eq!(
        sent["tools"],
        json!([{"type": "code_execution_20250825", "name": "code_execution"}])
    );
}

#[test]
fn settings_without_a_word_are_reported() {
    let (body, lost) = sent(
        json!({
            "n": 2, "seed": 1, "presence_penalty": 1, "frequency_penalty": 1, "logprobs": true,
            "top_logprobs": 2, "verbosity": "low", "metadata": {"a": "b"}, "prompt_cache_key": "k",
            "temperature": 0.5, "top_p": 0.5, "response_format": {"type": "json_object"},
            "stop": ["END", " "], "service_tier": "default",
        }),
        &[],
    );
    assert_eq!(lost, [Action::Dropped; 12]);
    assert_eq!(body["stop_sequences"], json!(["END"]));
    assert_eq!(body["service_tier"], "standard_only");
    assert_eq!(sent(json!({"n": 1}), &[]).1, []);
    let (body, lost) = sent(json!({"service_tier": "flex"}), &[]);
    assert_eq!(body["service_tier"], "auto");
    assert_eq!(lost, [Action::Approximated]);
}

#[test]
fn the_first_version_takes_sampling_unless_it_thinks() {
    let first = ("messages_version", "2023-06-01");
    let dice = json!({"temperature": 0.5, "top_p": 0.5});
    let (body, lost) = sent(dice.clone(), &[first]);
    assert_eq!(
        (&body["temperature"], &body["top_p"]),
        (&json!(0.5), &json!(0.5))
    );
    assert_eq!(lost, []);
    let (_, lost) = sent(dice.clone(), &[first, ("messages_sampling", "false")]);
    assert_eq!(lost, [Action::Dropped; 2]);
    let mut thinking = dice;
    thinking["reasoning_effort"] = json!("high");
    let (body, lost) = sent(thinking, &[first]);
    assert_eq!(body.get("temperature"), None);
    assert_eq!(lost, [Action::Dropped]);
}

#[test]
fn schemas_are_closed_and_the_rest_is_told() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "type": {"type": "string", "maxLength": 9, "description": "Kind."},
            "pick": {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "many": {"type": "array", "minItems": 1,
                "items": {"type": "object", "properties": {}, "additionalProperties": true}},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["type"],
    });
    let (body, lost) = sent(
        json!({"response_format":
            {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}),
        &[],
    );
    assert_eq!(
        body["output_config"]["format"],
        json!({"type": "json_schema", "schema": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "description": "Kind.\n\n{maxLength: 9}"},
                "pick": {"anyOf": [
                    {"type": "integer", "description": "{minimum: 1}"}, {"type": "null"}]},
                "many": {"type": "array", "minItems": 1,
                    "items": {"type": "object", "properties": {}, "additionalProperties": false}},
                "when": {"type": "string", "format": "date"},
            },
            "required": ["type"],
            "additionalProperties": false,
        }})
    );
    assert_eq!(lost, [Action::Dropped, Action::Added, Action::Approximated]);
}

#[test]
fn one_of_some_words_is_a_schema_too() {
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}],
        "generationConfig": {"maxOutputTokens": 9, "responseMimeType": "text/x.enum",
            "responseSchema": {"type": "STRING", "enum": ["a", "b"]}}});
    let (sent, lost) = send(Format::Native, &body, &[], None).expect("a good request");
    let schema = json!({"type": "string", "enum": ["a", "b"]});
    assert_eq!(sent["output_config"]["format"]["schema"], schema);
    assert_eq!(lost.len(), 1);
}

#[test]
fn thoughts_without_a_proof_of_the_format_stay_behind() {
    let (body, lost) = sent(
        json!({"messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Ho", "reasoning_content": "Hm."},
            {"role": "user", "content": "So?"},
        ]}),
        &[],
    );
    assert_eq!(body["messages"][1]["content"], "Ho");
    assert_eq!(lost, [Action::Dropped]);
}

#[test]
fn places_are_told_in_the_formats_own_words() {
    let part = |turn, part| FieldLocation::Part { turn, part };
    for (place, path) in [
        (FieldLocation::Path("a.b".into()), "a.b"),
        (FieldLocation::Setting(Setting::Stop), "stop_sequences"),
        (
            FieldLocation::Setting(Setting::OutputFormat),
            "output_config.format",
        ),
        (FieldLocation::Turn { turn: Some(3) }, "messages[3]"),
        (FieldLocation::Turn { turn: None }, "system"),
        (part(Some(3), Some(1)), "messages[3].content[1]"),
        (part(Some(3), None), "messages[3].content"),
        (part(None, Some(1)), "system[1]"),
        (part(None, None), "system"),
        (FieldLocation::Tool { tool: 2 }, "tools[2]"),
    ] {
        assert_eq!(Format::Messages.codec().path_of(&place), path);
    }
}

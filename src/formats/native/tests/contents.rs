//! Requests of clients of other formats, sent on.

use serde_json::{Value, json};

use crate::formats::{Capabilities, Codec as _, RequestHead, UpstreamTarget};
use crate::model::{Action, ApiError, FieldLocation, Format, Losses, Setting};
use crate::translate;

type Loss = Vec<(Action, String)>;

fn send(
    from: Format,
    body: &Value,
    capabilities: &[(&str, &str)],
) -> Result<(Value, Loss), ApiError> {
    let mut losses = Losses::default();
    let mut known = Capabilities::default();
    for (name, value) in capabilities {
        known.set(name, value).unwrap();
    }
    let target = UpstreamTarget {
        model: "m-1",
        stream: false,
        max_output_tokens: None,
        capabilities: &known,
        brand: "google",
        pictures_only: false,
    };
    let body = serde_json::to_vec(body).unwrap();
    let sent = translate::request(
        from,
        Format::Native,
        &RequestHead::default(),
        &body,
        &target,
        &mut losses,
    )?;
    let lost = losses
        .0
        .iter()
        .map(|lost| (lost.action, told(&lost.location)));
    Ok((serde_json::from_slice(&sent.body).unwrap(), lost.collect()))
}

fn told(place: &FieldLocation) -> String {
    match place {
        FieldLocation::Path(path) => path.to_string(),
        FieldLocation::Setting(setting) => format!("{setting:?}"),
        FieldLocation::Turn { turn } => format!("turn {turn:?}"),
        FieldLocation::Part { turn, part } => format!("part {turn:?} {part:?}"),
        FieldLocation::InToolResult { turn, part, inner } => {
            format!("part {turn:?} {part:?} {inner:?}")
        }
        FieldLocation::Field { of, field } => format!("{} {field:?}", told(of)),
        FieldLocation::Tool { tool } => format!("tool {tool}"),
        FieldLocation::ToolStrict { tool } => format!("tool {tool} strict"),
    }
}

fn chat(body: Value) -> (Value, Loss) {
    send(Format::Chat, &body, &[]).unwrap()
}

fn contents(messages: Value) -> (Value, Loss) {
    let (sent, lost) = chat(json!({"model": "m", "messages": messages}));
    (sent["contents"].clone(), lost)
}

/// The one part that a user's part becomes.
fn user_part(part: Value) -> Result<(Value, Loss), ApiError> {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": [part]}]});
    let (sent, lost) = send(Format::Chat, &body, &[])?;
    Ok((sent["contents"][0]["parts"][0].clone(), lost))
}

fn config(mut body: Value, capabilities: &[(&str, &str)]) -> (Value, Loss) {
    body["model"] = "m".into();
    body["messages"] = json!([{"role": "user", "content": "Hi"}]);
    let (sent, lost) = send(Format::Chat, &body, capabilities).unwrap();
    (sent["generationConfig"].clone(), lost)
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}})
}

#[test]
fn the_user_always_speaks_first() {
    let (sent, lost) = contents(json!([{"role": "assistant", "content": "Hello"}]));
    assert_eq!(
        sent,
        json!([
            {"role": "user", "parts": [{"text": "(continued)"}]},
            {"role": "model", "parts": [{"text": "Hello"}]}
        ])
    );
    assert_eq!(lost, [(Action::Approximated, "turn Some(0)".to_owned())]);
}

#[test]
fn a_system_prompt_holds_only_text() {
    let input = json!([{"type": "message", "role": "system", "content": [
        {"type": "input_image", "image_url": "https://example.com/a.png"}
    ]}]);
    let body = json!({"model": "m", "input": input});
    let api_error = send(Format::Responses, &body, &[]).unwrap_err();
    assert_eq!(api_error.status, 400);
}

#[test]
fn results_of_a_step_stand_together_before_everything_else() {
    let (sent, _) = contents(json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "tool_calls": [call("a", "{}"), call("b", " "), call("c", "oops")]},
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        {"role": "user", "content": "Well?"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "tool", "tool_call_id": "c", "content": " {\"n\": 1} "},
    ]));
    let answer = |id, response: Value| json!({"functionResponse": {"id": id, "name": "look", "response": response}});
    assert_eq!(
        sent[1]["parts"][2]["functionCall"]["args"],
        json!({"_raw": "oops"})
    );
    assert_eq!(sent[1]["parts"][1]["functionCall"]["args"], json!({}));
    assert_eq!(
        sent[2]["parts"],
        json!([
            answer("a", json!({"output": "A"})),
            answer("b", json!({"output": ""})),
            answer("c", json!({"n": 1}))
        ])
    );
    assert_eq!(sent[3]["parts"], json!([{"text": "Well?"}]));
}

fn with_picture() -> Value {
    json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [
            {"type": "text", "text": "Chart:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk_"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Notes"}}
        ]}]}
    ]})
}

#[test]
fn pictures_of_a_result_follow_it() {
    let (sent, lost) = send(Format::Messages, &with_picture(), &[]).unwrap();
    let response = &sent["contents"][2]["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"output": "Chart:\n\nNotes"}));
    assert_eq!(
        sent["contents"][3],
        json!({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk/"}}]})
    );
    assert_eq!(
        lost,
        [(
            Action::Approximated,
            "part Some(2) Some(0) Some(1)".to_owned()
        )]
    );
}

#[test]
fn some_models_take_pictures_inside_of_results() {
    let capability = [("native_function_response_parts", "true")];
    let (sent, lost) = send(Format::Messages, &with_picture(), &capability).unwrap();
    assert_eq!(
        sent["contents"][2]["parts"][0]["functionResponse"]["parts"],
        json!([{"inlineData": {"mimeType": "image/png", "data": "aGk/"}}])
    );
    assert_eq!(sent["contents"].as_array().unwrap().len(), 3);
    assert_eq!(lost, []);
}

#[test]
fn a_moved_picture_does_not_end_the_turn_of_the_user() {
    let capability = [("native_requires_signature", "true")];
    let (sent, _) = send(Format::Messages, &with_picture(), &capability).unwrap();
    let signature = &sent["contents"][1]["parts"][0]["thoughtSignature"];
    assert_eq!(*signature, "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=");
}

#[test]
fn only_first_calls_since_the_user_spoke_get_a_stand_in() {
    let step = |id: &str| {
        let other = format!("{id}2");
        json!({"role": "assistant", "tool_calls": [call(id, "{}"), call(&other, "{}")]})
    };
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "One."}, step("a"), result("a"), result("a2"),
        {"role": "user", "content": "Two."}, step("b"), result("b"), result("b2"),
        step("c"), result("c"), result("c2"),
    ]});
    let capability = [("native_requires_signature", "true")];
    let (sent, lost) = send(Format::Chat, &body, &capability).unwrap();
    let signed: Vec<_> = sent["contents"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|content| content["parts"].as_array().unwrap())
        .filter(|part| part.get("thoughtSignature").is_some())
        .map(|part| part["functionCall"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(signed, ["b", "c"]);
    assert_eq!(lost, []);
}

#[test]
fn a_result_needs_the_name_of_its_call() {
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "tool", "tool_call_id": "x", "content": "1"}
    ]});
    let api_error = send(Format::Chat, &body, &[]).unwrap_err();
    assert_eq!(
        (api_error.status, api_error.location.is_some()),
        (400, true)
    );
    let (sent, _) = contents(json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "1"}
    ]));
    assert_eq!(
        sent[2]["parts"],
        json!([{"functionResponse": {"name": "look", "response": {"output": "1"}}}])
    );
}

/// `n` of the words `Q2lRQmU5L2U=`, and the same of another format.
const NATIVE: &str = "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ==";
const FOREIGN: &str = "b21uaWdsb3QvMSBlCnJzXzEKeA==";
const RAW: &str = "Q2lRQmU5L2U=";

fn assistant(content: Value) -> (Value, Loss) {
    let body = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": "Go on."}
    ]});
    let (sent, lost) = send(Format::Messages, &body, &[]).unwrap();
    (sent["contents"][1]["parts"].clone(), lost)
}

#[test]
fn a_signature_returns_to_the_part_after_it_or_the_one_before() {
    let thinking =
        |signature| json!({"type": "thinking", "thinking": "Hm.", "signature": signature});
    let redacted = json!({"type": "redacted_thinking", "data": NATIVE});
    let text = json!({"type": "text", "text": "42"});
    for (content, parts) in [
        (
            json!([thinking(NATIVE), text]),
            json!([{"text": "Hm.", "thought": true}, {"text": "42", "thoughtSignature": RAW}]),
        ),
        (
            json!([text, redacted]),
            json!([{"text": "42", "thoughtSignature": RAW}]),
        ),
        (
            json!([redacted, text, redacted]),
            json!([{"text": "42", "thoughtSignature": RAW}, {"text": "", "thoughtSignature": RAW}]),
        ),
    ] {
        assert_eq!(assistant(content), (parts, vec![]));
    }
}

#[test]
fn thoughts_that_nobody_here_can_vouch_for_stay_out() {
    let dropped = |part| vec![(Action::Dropped, format!("part Some(1) Some({part})"))];
    let text = json!({"type": "text", "text": "42"});
    for signature in [FOREIGN, "EqQBCkYIBRgC", ""] {
        let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": signature});
        assert_eq!(
            assistant(json!([thinking, text])),
            (json!([{"text": "42"}]), dropped(0)),
            "{signature:?}"
        );
    }
}

#[test]
fn media_of_every_kind() {
    let data = |url: &str| user_part(json!({"type": "image_url", "image_url": {"url": url}}));
    assert_eq!(
        data("data:image/gif;base64,-_8").unwrap(),
        (
            json!({"inlineData": {"mimeType": "image/gif", "data": "+/8="}}),
            vec![]
        )
    );
    let audio = json!({"type": "input_audio", "input_audio": {"data": "aGkh", "format": "mp3"}});
    assert_eq!(
        user_part(audio).unwrap().0,
        json!({"inlineData": {"mimeType": "audio/mpeg", "data": "aGkh"}})
    );
    assert_eq!(
        data("https://example.com/a/Cat.JPEG?size=1").unwrap(),
        (
            json!({"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.com/a/Cat.JPEG?size=1"}}),
            vec![]
        )
    );
    let (part, lost) = data("https://example.com/cat").unwrap();
    assert_eq!(part["fileData"]["mimeType"], "image/jpeg");
    assert_eq!(
        lost,
        [(Action::Approximated, "part Some(0) Some(0)".to_owned())]
    );
    assert_eq!(data("http://example.com/cat.png").unwrap_err().status, 400);
    let stored = json!({"type": "file", "file": {"file_id": "file-1"}});
    assert_eq!(user_part(stored).unwrap_err().status, 400);
}

#[test]
fn documents_of_other_formats() {
    let file = |part: Value| {
        let body = json!({"model": "m", "input": [{"role": "user", "content": [part]}]});
        let (sent, lost) = send(Format::Responses, &body, &[]).unwrap();
        (sent["contents"][0]["parts"][0].clone(), lost)
    };
    assert_eq!(
        file(json!({"type": "input_file", "file_url": "https://example.com/a.csv"})).0,
        json!({"fileData": {"mimeType": "text/csv", "fileUri": "https://example.com/a.csv"}})
    );
    let (part, lost) =
        file(json!({"type": "input_file", "file_url": "https://example.com/report"}));
    assert_eq!(part["fileData"]["mimeType"], "application/pdf");
    assert_eq!(lost.len(), 1);
    let (part, lost) = file(
        json!({"type": "input_file", "file_data": "data:;base64,aGkh", "filename": "notes.md"}),
    );
    assert_eq!(
        part,
        json!({"inlineData": {"mimeType": "text/markdown", "data": "aGkh"}})
    );
    assert_eq!(
        lost,
        [(Action::Dropped, "part Some(0) Some(0) FileName".to_owned())]
    );
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi!"}}
    ]}]});
    let (sent, _) = send(Format::Messages, &body, &[]).unwrap();
    assert_eq!(
        sent["contents"][0]["parts"],
        json!([{"inlineData": {"mimeType": "text/plain", "data": "aGkh"}}])
    );
}

#[test]
fn detail_counts_where_all_pictures_agree() {
    let pictures = |details: [&str; 2]| {
        let picture = |detail| {
            json!({"type": "image_url",
            "image_url": {"url": "data:image/png;base64,aGkh", "detail": detail}})
        };
        let parts: Vec<_> = details.into_iter().map(picture).collect();
        let (sent, lost) =
            chat(json!({"model": "m", "messages": [{"role": "user", "content": parts}]}));
        let actions: Vec<_> = lost.into_iter().map(|(action, _)| action).collect();
        (sent["generationConfig"]["mediaResolution"].clone(), actions)
    };
    use Action::{Approximated, Dropped};
    assert_eq!(
        pictures(["low", "low"]),
        (json!("MEDIA_RESOLUTION_LOW"), vec![Approximated; 2])
    );
    assert_eq!(
        pictures(["high", "high"]),
        (json!("MEDIA_RESOLUTION_HIGH"), vec![Approximated; 2])
    );
    assert_eq!(pictures(["low", "high"]), (Value::Null, vec![Dropped; 2]));
    assert_eq!(pictures(["low", "auto"]), (Value::Null, vec![Dropped]));
    assert_eq!(
        pictures(["original", "original"]),
        (Value::Null, vec![Dropped; 2])
    );
    assert_eq!(pictures(["auto", "auto"]), (Value::Null, vec![]));
}

#[test]
fn effort_is_a_level_or_a_budget() {
    let thinking = |effort: &str, capabilities: &[(&str, &str)]| {
        let (config, lost) = config(json!({"reasoning_effort": effort}), capabilities);
        (config["thinkingConfig"].clone(), lost.len())
    };
    let budget = [("native_thinking", "budget")];
    for (effort, level, exact, tokens) in [
        ("minimal", "MINIMAL", true, 512),
        ("low", "LOW", true, 1024),
        ("medium", "MEDIUM", true, 8192),
        ("high", "HIGH", true, 24576),
        ("xhigh", "HIGH", false, 32768),
        ("max", "HIGH", false, 32768),
    ] {
        let lost = usize::from(!exact);
        assert_eq!(
            thinking(effort, &[]),
            (json!({"thinkingLevel": level}), lost)
        );
        assert_eq!(
            thinking(effort, &budget),
            (json!({"thinkingBudget": tokens}), 0)
        );
    }
    let off = (json!({"thinkingBudget": 0}), 0);
    assert_eq!(thinking("none", &[]), off);
    assert_eq!(thinking("none", &budget), off);
    let some = [("efforts", "low,high")];
    assert_eq!(
        thinking("medium", &some),
        (json!({"thinkingLevel": "LOW"}), 1)
    );
    assert_eq!(
        thinking("none", &some),
        (json!({"thinkingLevel": "LOW"}), 1)
    );
}

#[test]
fn budgets_and_visibility_of_a_messages_client() {
    let thinking = |thinking: Value, capabilities: &[(&str, &str)]| {
        let body = json!({"model": "m", "max_tokens": 9, "thinking": thinking,
            "messages": [{"role": "user", "content": "Hi"}]});
        let (sent, lost) = send(Format::Messages, &body, capabilities).unwrap();
        let config = sent["generationConfig"]["thinkingConfig"].clone();
        (config, lost.len())
    };
    let enabled = |tokens| json!({"type": "enabled", "budget_tokens": tokens});
    let level = [("native_thinking", "level")];
    for (tokens, word) in [(1024, "LOW"), (8192, "MEDIUM"), (8193, "HIGH")] {
        assert_eq!(
            thinking(enabled(tokens), &level),
            (json!({"thinkingLevel": word, "includeThoughts": true}), 1)
        );
    }
    assert_eq!(
        thinking(json!({"type": "adaptive"}), &[]),
        (json!({"includeThoughts": true}), 0)
    );
    assert_eq!(
        thinking(json!({"type": "adaptive", "display": "omitted"}), &[]),
        (Value::Null, 0)
    );
    assert_eq!(
        thinking(json!({"type": "disabled"}), &[]),
        (json!({"thinkingBudget": 0}), 0)
    );
}

#[test]
fn settings_without_a_place_are_reported() {
    let (config, lost) = config(
        json!({"verbosity": "low", "user": "u", "prompt_cache_key": "k", "metadata": {"a": "b"},
            "service_tier": "scale", "parallel_tool_calls": true, "seed": 4_000_000_000_u64,
            "web_search_options": {"search_context_size": "low"}}),
        &[],
    );
    assert_eq!(config, json!({"seed": i32::MAX}));
    let mut names: Vec<_> = lost.iter().map(|(_, place)| place.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "CacheKey",
            "Metadata",
            "Search",
            "Seed",
            "ServiceTier",
            "User",
            "Verbosity"
        ]
    );
}

#[test]
fn tiers_have_their_own_words() {
    for (tier, word) in [
        ("auto", Value::Null),
        ("default", json!("standard")),
        ("flex", json!("flex")),
        ("priority", json!("priority")),
    ] {
        let (sent, lost) = chat(json!({"model": "m", "service_tier": tier,
            "messages": [{"role": "user", "content": "Hi"}]}));
        assert_eq!((&sent["serviceTier"], lost), (&word, vec![]));
    }
}

#[test]
fn shapes_of_the_answer() {
    assert_eq!(
        config(json!({"response_format": {"type": "json_object"}}), &[]),
        (json!({"responseMimeType": "application/json"}), vec![])
    );
    let (config, lost) = config(
        json!({"modalities": ["text", "image"], "response_format": {"type": "json_schema",
            "json_schema": {"name": "n", "schema": {"enum": [1, 2]}}}}),
        &[],
    );
    assert_eq!(
        config,
        json!({"responseMimeType": "application/json", "responseJsonSchema": {"enum": [1, 2]},
            "responseModalities": ["TEXT", "IMAGE"]})
    );
    assert_eq!(lost, [(Action::Dropped, "OutputName".to_owned())]);
}

fn tools(body: Value) -> (Value, Loss) {
    let mut whole = json!({"model": "m", "input": "Hi"});
    for (key, value) in body.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let (sent, lost) = send(Format::Responses, &whole, &[]).unwrap();
    (
        json!({"tools": sent["tools"], "toolConfig": sent["toolConfig"]}),
        lost,
    )
}

#[test]
fn tools_of_every_kind() {
    let (sent, lost) = tools(json!({"tools": [
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
        lost,
        [
            (Action::Dropped, "tool 0 strict".to_owned()),
            (Action::Approximated, "tool 1".to_owned())
        ]
    );
}

#[test]
fn a_free_choice_among_some_leaves_out_the_others() {
    let tool = |name| json!({"type": "function", "name": name, "strict": false});
    let choice = |mode| {
        json!({"tools": [tool("a"), tool("b")], "tool_choice": {"type": "allowed_tools",
            "mode": mode, "tools": [{"type": "function", "name": "b"}]}})
    };
    let (sent, lost) = tools(choice("auto"));
    assert_eq!(
        sent,
        json!({"tools": [{"functionDeclarations": [{"name": "b"}]}], "toolConfig": null})
    );
    assert_eq!(lost, [(Action::Approximated, "ToolChoice".to_owned())]);
    let (sent, lost) = tools(choice("required"));
    assert_eq!(
        sent["toolConfig"]["functionCallingConfig"],
        json!({"mode": "ANY", "allowedFunctionNames": ["b"]})
    );
    assert_eq!(lost, []);
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
fn every_place_has_a_path() {
    let path = |place| super::super::Native.path_of(&place);
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

#[test]
fn an_answer_is_at_least_one_token_long() {
    let body =
        json!({"model": "m", "max_tokens": 0, "messages": [{"role": "user", "content": "A"}]});
    let (sent, lost) = send(Format::Messages, &body, &[]).unwrap();
    assert_eq!(sent["generationConfig"], json!({"maxOutputTokens": 1}));
    assert_eq!(lost, [(Action::Approximated, "MaxTokens".to_owned())]);
}

//! Recorded requests of real clients, sent again to an upstream of every format.

mod event_order;
mod response_content;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, every_format_config, send, stream_events,
};
use serde_json::Value;

use response_content::ResponseContent;

/// The requests of one client in one format, as `tests/clients/run --record` keeps them.
struct Recording {
    file: String,
    format: String,
    requests: Vec<Value>,
}

fn recordings() -> Vec<Recording> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/recordings");
    let files = std::fs::read_dir(directory).expect("recordings");
    let mut recordings: Vec<Recording> = files
        .map(|file| {
            let file = file.expect("a file").path();
            let text = std::fs::read_to_string(&file).expect("text");
            let mut recording: Value = serde_json::from_str(&text).expect("JSON");
            let requests = recording["requests"].take();
            Recording {
                file: file.file_stem().expect("a name").display().to_string(),
                format: recording["format"].as_str().expect("a format").to_owned(),
                requests: serde_json::from_value(requests).expect("a list"),
            }
        })
        .collect();
    recordings.sort_by(|one, other| one.file.cmp(&other.file));
    recordings
}

async fn replay(gateway: &Gateway, request: &Value, model: &str) -> Response {
    let path = request["path"].as_str().expect("a path");
    let body = request["body"].to_string().replace("{model}", model);
    let mut post = client().post(gateway.url(&path.replace("{model}", model)));
    for (name, value) in request["headers"].as_object().expect("headers") {
        let value = value.as_str().expect("text").replace("{key}", KEY);
        post = post.header(name, value);
    }
    send(post.header("content-type", "application/json").body(body)).await
}

#[tokio::test]
async fn recorded_requests_of_clients_are_served_by_every_format() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let recordings = recordings();
    for format in FORMATS.map(|(format, _)| format) {
        let speaks = |recording: &&Recording| recording.format == format;
        assert!(recordings.iter().any(|one| speaks(&one)), "{format}");
    }
    let mut wrong = Vec::new();
    for recording in &recordings {
        for (number, request) in recording.requests.iter().enumerate() {
            for (upstream, _) in FORMATS {
                let what = format!("{} request {number} to {upstream}", recording.file);
                let response = replay(&gateway, request, &format!("same-{upstream}")).await;
                assert_eq!(response.status, 200, "{what}: {}", response.text());
                assert_answered(&recording.format, request, &response, &what);
                let known = lost(&recording.format, upstream);
                for path in paths(response.header("x-omniglot-dropped")) {
                    if !known.contains(&path.as_str()) {
                        wrong.push(format!("{what}: {path}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "dropped:\n{}", wrong.join("\n"));
}

/// The answer holds what the words of the request ask of the mock.
fn assert_answered(format: &str, request: &Value, response: &Response, what: &str) {
    let received = if response.header("content-type") == "text/event-stream" {
        let pieces = stream_events(format, response.text());
        event_order::assert_stream(format, &pieces, what);
        ResponseContent::from_stream(format, pieces.iter().map(|(_, data)| data))
    } else {
        ResponseContent::from_json(format, &response.json())
    };
    let prompt = prompt_of(&request["body"]);
    let body = request["body"].to_string();
    let results = [
        "\"role\":\"tool\"",
        "tool_result",
        "functionResponse",
        "function_response",
        "function_call_output",
    ];
    if results.iter().any(|mark| body.contains(mark)) {
        assert!(
            received.text.starts_with("The tools answered:"),
            "{what}: {received:?}"
        );
        assert!(
            received.text.contains("word") || received.text.contains("not found"),
            "{what}: {received:?}"
        );
    } else if prompt.contains("mock:tool=") {
        let words = prompt.split("mock:tool=").skip(1);
        let names: Vec<&str> = words.filter_map(|rest| rest.split(' ').next()).collect();
        assert_eq!(received.calls, names, "{what}: {received:?}");
    } else if let Some((_, text)) = prompt.split_once("mock:text=") {
        assert_eq!(received.text, text.trim(), "{what}");
    } else {
        assert!(received.is_recipe(), "{what}: {received:?}");
    }
}

/// The text with the words for the mock, wherever the format has it.
fn prompt_of(body: &Value) -> String {
    match body {
        Value::String(text) if text.contains("mock:") => text.clone(),
        Value::Array(items) => items.iter().map(prompt_of).collect(),
        Value::Object(fields) => fields.values().map(prompt_of).collect(),
        _ => String::new(),
    }
}

/// `messages[3].content[0], tools[1]` without the numbers, which differ from client to client.
fn paths(header: &str) -> Vec<String> {
    let digit = |letter: char| letter.is_ascii_digit();
    let paths = header.split(", ").filter(|path| !path.is_empty());
    paths.map(|path| path.replace(digit, "")).collect()
}

/// What these clients say that an upstream's format has no words for.
fn lost(client: &str, upstream: &str) -> Vec<&'static str> {
    const CACHED: [&str; 2] = [
        "system[].cache_control",
        "messages[].content[].cache_control",
    ];
    // How it searches and what a group of its tools is for, and what it tells of itself.
    const CODEX: [&str; 3] = [
        "tools[].external_web_access",
        "tools[].description",
        "client_metadata",
    ];
    // Signatures of no use elsewhere, or made up by the client.
    const SIGNED: &str = "contents[].parts[].thoughtSignature";
    const ORDER: [&str; 2] = [
        "generationConfig.responseSchema.property_ordering",
        "generationConfig.response_schema.propertyOrdering",
    ];
    match (client, upstream) {
        ("chat", "messages") => vec!["temperature", "response_format.json_schema.name"],
        ("chat", "native") => vec![
            "response_format.json_schema.name",
            "tools[].function.strict",
        ],
        ("messages", "chat" | "native" | "responses") => {
            let mut lost = [
                &CACHED[..],
                &["tools[].defer_loading", "context_management"],
            ]
            .concat();
            if upstream == "native" {
                lost.extend(["metadata.user_id", "tool_choice.disable_parallel_tool_use"]);
            }
            lost
        }
        ("native", "chat" | "messages" | "responses") => {
            let mut lost = [
                &ORDER[..],
                &[SIGNED, "safetySettings", "generationConfig.topK"],
            ]
            .concat();
            lost.extend(match upstream {
                "chat" => &["generationConfig.thinkingConfig"][..],
                "messages" => &["generationConfig.temperature", "generationConfig.topP"],
                _ => &[],
            });
            lost
        }
        ("responses", "chat") => [&CODEX[..], &["reasoning"]].concat(),
        ("responses", "messages" | "native") => {
            let mut lost = [&CODEX[..], &["prompt_cache_key", "text.format.name"]].concat();
            if upstream == "native" {
                lost.push("tools[].strict");
            }
            lost
        }
        _ => Vec::new(),
    }
}

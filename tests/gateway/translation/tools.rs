//! Tool calls come back under the names that the client declared, whatever the upstream was sent.

use omniglot_test_support::{
    Gateway, Mock, Response, every_format_config, post, request, sse_events,
};
use serde_json::{Value, json};

use super::pairs;

/// Legal in no format, and longer than some allow; readers of most formats take it all the same.
fn odd_name() -> String {
    format!("do it/now {}", "x".repeat(60))
}

/// A declaration of a function in the words of a format.
fn function(format: &str, name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    match format {
        "chat" => json!({"type": "function", "function": {"name": name, "parameters": schema}}),
        "messages" => json!({"name": name, "input_schema": schema}),
        "native" => json!({"functionDeclarations": [{"name": name, "parameters": schema}]}),
        _ => json!({"type": "function", "name": name, "parameters": schema}),
    }
}

/// The first call of a reply that was asked for with this tool: whole, then in pieces.
async fn called(gateway: &Gateway, client: &str, upstream: &str, tool: &Value) -> [Value; 2] {
    let mut seen = [Value::Null, Value::Null];
    for (stream, seen) in [false, true].into_iter().zip(&mut seen) {
        let (path, mut body) = request(client, &format!("same-{upstream}"), "mock:tool", stream);
        body["tools"] = json!([tool]);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(
            response.status,
            200,
            "{client} {upstream}: {}",
            response.text()
        );
        *seen = match stream {
            false => whole(client, &response.json()),
            true => streamed(client, &response),
        };
        assert!(seen.is_object(), "{client} {upstream}: {}", response.text());
    }
    seen
}

/// What names the call and what it says, in the words of the format.
fn whole(format: &str, response: &Value) -> Value {
    let found = |list: &Value, holds: &dyn Fn(&Value) -> bool| {
        let mut items = list.as_array().into_iter().flatten();
        items.find(|item| holds(item)).cloned().unwrap_or_default()
    };
    match format {
        "chat" => response["choices"][0]["message"]["tool_calls"][0].clone(),
        "messages" => found(&response["content"], &|block| block["type"] == "tool_use"),
        "native" => {
            let parts = &response["candidates"][0]["content"]["parts"];
            found(parts, &|part| part["functionCall"].is_object())["functionCall"].clone()
        }
        _ => found(&response["output"], &|item| item["call_id"].is_string()),
    }
}

/// The call as the pieces of a stream make it up.
fn streamed(format: &str, response: &Response) -> Value {
    let pieces = sse_events(response.text());
    let pieces = pieces.iter().map(|(_, data)| data.as_str());
    let mut call = Value::Null;
    for event in pieces.filter_map(|data| serde_json::from_str::<Value>(data).ok()) {
        match format {
            "chat" => merge(&mut call, &event["choices"][0]["delta"]["tool_calls"][0]),
            "messages" => merge(&mut call, &event["content_block"]),
            "native" if call.is_null() => call = whole("native", &event),
            "responses" if event["type"] == "response.output_item.added" => {
                assert_eq!(event["item"]["status"], "in_progress");
                call = event["item"].clone();
            }
            "responses" if event["type"] == "response.output_item.done" => {
                for known in ["type", "name", "namespace", "call_id"] {
                    assert_eq!(call[known], event["item"][known]);
                }
                call = event["item"].clone();
            }
            _ => {}
        }
    }
    call
}

/// Strings that come in pieces grow, all else is there from the start.
fn merge(whole: &mut Value, piece: &Value) {
    match (whole, piece) {
        (Value::Object(whole), Value::Object(piece)) => {
            for (key, value) in piece {
                merge(whole.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::String(whole), Value::String(piece)) => whole.push_str(piece),
        (whole @ Value::Null, piece) => *whole = piece.clone(),
        _ => {}
    }
}

#[tokio::test]
async fn a_tool_keeps_the_name_that_its_client_gave_it() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (client, upstream) in pairs() {
        // Clients of the native format cannot even write other letters.
        let name = match client {
            "native" => format!("do.it:now-{}", "x".repeat(60)),
            _ => odd_name(),
        };
        let calls = called(&gateway, client, upstream, &function(client, &name)).await;
        for call in calls {
            let seen = match client {
                "chat" => &call["function"]["name"],
                _ => &call["name"],
            };
            assert_eq!(*seen, name, "{client} {upstream}: {call}");
        }
    }
}

#[tokio::test]
async fn a_custom_tool_is_called_with_free_text() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (client, tool) in [
        (
            "chat",
            json!({"type": "custom", "custom": {"name": "run.it"}}),
        ),
        ("responses", json!({"type": "custom", "name": "run.it"})),
    ] {
        for (_, upstream) in pairs().filter(|(from, _)| *from == client) {
            for call in called(&gateway, client, upstream, &tool).await {
                let (kind, said) = match client {
                    "chat" => ("custom", &call["custom"]),
                    _ => ("custom_tool_call", &call),
                };
                assert_eq!(call["type"], kind, "{client} {upstream}: {call}");
                assert_eq!(said["name"], "run.it", "{client} {upstream}: {call}");
                let input = said["input"].as_str().expect("free text");
                assert!(!input.is_empty() && !input.starts_with('{'), "{call}");
            }
        }
    }
}

#[tokio::test]
async fn a_tool_of_a_namespace_is_called_in_its_namespace() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for namespace in [
        "agents_v1",
        "agents of a very long name that no upstream takes as it is",
    ] {
        let tool = json!({"type": "namespace", "name": namespace, "description": "agents",
            "tools": [function("responses", "spawn")]});
        for upstream in ["chat", "messages", "native"] {
            for call in called(&gateway, "responses", upstream, &tool).await {
                assert_eq!(call["type"], "function_call", "{upstream}: {call}");
                assert_eq!(call["name"], "spawn", "{upstream}: {call}");
                assert_eq!(call["namespace"], namespace, "{upstream}: {call}");
            }
        }
    }
}

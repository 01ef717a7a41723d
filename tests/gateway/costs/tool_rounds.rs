//! The upstream's own tools read the prompt again and again: a spending cap reserves each time.

use omniglot_test_support::{Gateway, KEY, Mock, Response, client, request, send};
use serde_json::{Value, json};

use super::config;

async fn ask(gateway: &Gateway, format: &str, model: &str, key: &str, more: &Value) -> Response {
    let (path, mut body) = request(format, model, "mock:usage=1,0,1,0 mock:text=hi", false);
    for (field, value) in more.as_object().expect("an object") {
        body[field] = value.clone();
    }
    let asked = client().post(gateway.url(&path)).bearer_auth(key);
    send(asked.json(&body)).await
}

#[tokio::test]
async fn each_round_of_hosted_tools_is_reserved() {
    let mock = Mock::start();
    // A thousandth for every token of the input: the cap has 10000 of them.
    let keys = ", {name: capped, secret: key-capped, spending_cap: 10}";
    let model = |format: &str| {
        format!(
            "  - {{id: small-{format}, pricing: {{input: 1000}}, max_input_tokens: 1000, max_output_tokens: 1, \
             upstreams: [{{name: {format}}}]}}\n"
        )
    };
    let models = ["chat", "messages", "native", "responses"].map(model);
    let gateway = Gateway::start(&config(mock.address, keys, &models.concat()));
    let search = |more: Value| {
        let mut tool = json!({"type": "web_search_20250305", "name": "web_search"});
        if let Some(limit) = more.as_u64() {
            tool["max_uses"] = json!(limit);
        }
        json!({"tools": [tool]})
    };
    for (client, upstream, more, rounds) in [
        ("messages", "messages", search(Value::Null), 10),
        ("messages", "messages", search(json!(12)), 12),
        ("messages", "messages", search(json!(3)), 10),
        ("messages", "responses", search(json!(3)), 10),
        (
            "responses",
            "responses",
            json!({"tools": [{"type": "web_search"}]}),
            10,
        ),
        (
            "responses",
            "responses",
            json!({"tools": [{"type": "web_search"}], "max_tool_calls": 3}),
            3,
        ),
        (
            "responses",
            "responses",
            json!({"tools": [{"type": "mcp", "server_label": "a"}]}),
            10,
        ),
        (
            "responses",
            "messages",
            json!({"tools": [{"type": "web_search"}], "max_tool_calls": 3}),
            10,
        ),
        ("chat", "responses", json!({"web_search_options": {}}), 10),
        ("chat", "chat", json!({"web_search_options": {}}), 10),
        (
            "native",
            "native",
            json!({"tools": [{"googleSearch": {}}]}),
            10,
        ),
        (
            "responses",
            "responses",
            json!({"tools": [{"type": "local_shell"}]}),
            0,
        ),
        // What the gateway does not know may start tools, but is not translated.
        ("chat", "chat", json!({"plugins": [{"id": "web"}]}), 10),
        (
            "chat",
            "chat",
            json!({"search_parameters": {"mode": "on"}}),
            10,
        ),
        ("chat", "chat", json!({"enable_search": true}), 10),
        ("chat", "chat", json!({"Web_Search_Options": {}}), 10),
        ("chat", "chat", json!({"tools": [{"googleSearch": {}}]}), 10),
        ("chat", "messages", json!({"plugins": [{"id": "web"}]}), 0),
        ("messages", "messages", search(json!(0)), 10),
        (
            "messages",
            "messages",
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1, "Max_Uses": 50}]}),
            50,
        ),
        // The upstream makes images with a tool of its own.
        (
            "chat",
            "responses",
            json!({"modalities": ["text", "image"]}),
            10,
        ),
        (
            "native",
            "responses",
            json!({"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}),
            10,
        ),
        ("chat", "responses", json!({"modalities": ["text"]}), 0),
        (
            "native",
            "native",
            json!({"cachedContent": "cachedContents/a"}),
            10,
        ),
        (
            "responses",
            "responses",
            json!({"tools": [{"type": "web_search"}], "max_tool_calls": 0}),
            10,
        ),
        (
            "responses",
            "responses",
            json!({"tools": [{"type": "namespace", "name": "n", "Tools": [{"type": "mcp"}]}]}),
            10,
        ),
        // Tools may stand in the conversation too.
        (
            "responses",
            "responses",
            json!({"store": false, "input": [{"role": "user", "content": "hi"},
                {"type": "additional_tools", "tools": [{"type": "web_search"}]}]}),
            10,
        ),
        (
            "responses",
            "responses",
            json!({"input": [{"role": "user", "content": "hi"},
                {"type": "additional_tools", "tools": [{"type": "function", "name": "f"}]}]}),
            0,
        ),
        (
            "messages",
            "messages",
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"},
                {"type": "tool_addition", "tool": {"type": "web_search_20250305", "name": "web_search"}}]}]}),
            10,
        ),
        (
            "chat",
            "chat",
            json!({"messages": [{"role": "user", "content": "hi", "tools": [{"type": "web_search"}]}]}),
            10,
        ),
        (
            "native",
            "native",
            json!({"contents": [{"role": "user", "parts": [{"text": "hi"}], "tools": [{"googleSearch": {}}]}]}),
            10,
        ),
    ] {
        let model = format!("small-{upstream}");
        let response = ask(&gateway, client, &model, "key-capped", &more).await;
        let is_refused = response.status == 429;
        assert_eq!(
            is_refused,
            rounds >= 10,
            "{client} {upstream} {more}: {}",
            response.text()
        );
        if is_refused {
            let (tokens, readings) = (1000 * (rounds + 1), rounds + 1);
            let words = format!("{tokens} tokens, read {readings} times");
            let message = response.error(client);
            assert!(message.contains(&words), "{more}: {message}");
        }
        let free = ask(&gateway, client, &model, KEY, &more).await;
        assert_ne!(
            free.status,
            429,
            "{client} {upstream} {more}: {}",
            free.text()
        );
    }
}

#[tokio::test]
async fn a_compaction_of_the_responses_api_is_reserved() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 10}";
    let models = "  - {id: small, pricing: {input: 1000, output: 1000}, max_input_tokens: 3000, max_output_tokens: 2000, \
                  upstreams: [{name: responses}]}\n";
    let gateway = Gateway::start(&config(mock.address, keys, models));
    for (management, limit, status) in [
        // Input twice, the summary and the response.
        (
            json!([{"type": "compaction", "compact_threshold": 900}]),
            2100,
            429,
        ),
        (
            json!([{"type": "compaction", "compact_threshold": 900}]),
            1900,
            200,
        ),
        (json!([]), 2100, 200),
    ] {
        let more = json!({"context_management": management, "max_output_tokens": limit});
        let response = ask(&gateway, "responses", "small", "key-capped", &more).await;
        let is_refused = response.status == 429;
        assert_eq!(is_refused, status == 429, "{more}: {}", response.text());
    }
}

/// An upstream may take either of two fields for its limit, and some do not mind the case of a name.
#[tokio::test]
async fn fields_that_give_tools_are_read_once() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 10}";
    let models = "  - {id: small-messages, pricing: {input: 1}, upstreams: [{name: messages}]}\n  \
                  - {id: small-responses, pricing: {input: 1}, upstreams: [{name: responses}]}\n  \
                  - {id: small-chat, pricing: {input: 1}, upstreams: [{name: chat}]}\n";
    let gateway = Gateway::start(&config(mock.address, keys, models));
    for (format, name) in [
        ("responses", "Tools"),
        ("responses", "Max_Tool_Calls"),
        ("responses", "context_Management"),
        ("responses", "toolſ"),
        ("messages", "Tools"),
        ("messages", "MCP_servers"),
        ("messages", "Context_management"),
        ("chat", "Prediction"),
    ] {
        let mut more = serde_json::Map::new();
        more.insert(name.to_owned(), json!([]));
        let model = format!("small-{format}");
        let response = ask(&gateway, format, &model, "key-capped", &json!(more)).await;
        assert_eq!(response.status, 400, "{name}: {}", response.text());
        let message = response.error(format);
        assert!(message.contains("must be spelled"), "{message}");
        let free = ask(&gateway, format, &model, KEY, &json!(more)).await;
        assert_eq!(free.status, 200, "{name}: {}", free.text());
    }
}

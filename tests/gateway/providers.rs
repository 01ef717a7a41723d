//! Presets of providers, and upstreams that speak several formats.

use omniglot::config::{Provider, providers};
use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, echoed_request, omniglot, post, request, sse_events,
};
use serde_json::{Value, json};

/// The path at which the mock is asked for a response of this format.
fn path_of(format: &str, model: &str) -> String {
    match format {
        "chat" => "/v1/chat/completions".to_owned(),
        "messages" => "/v1/messages".to_owned(),
        "responses" => "/v1/responses".to_owned(),
        _ => format!("/v1beta/models/{model}:generateContent"),
    }
}

/// The formats of a preset with the mock in their place. The images API is tested with the images.
fn formats_at(mock: &Mock, provider: &Provider) -> String {
    let formats = provider.formats.iter().filter_map(|(format, _)| {
        let (name, prefix) = FORMATS
            .into_iter()
            .find(|(name, _)| *name == format.name())?;
        Some(format!("{name}: \"http://{}{prefix}\"", mock.address))
    });
    formats.collect::<Vec<_>>().join(", ")
}

/// The presets but those of clouds, whose paths are others.
fn plain_presets() -> impl Iterator<Item = &'static Provider> {
    let is_cloud = |name: &str| {
        let clouds = ["azure", "vertex"];
        clouds.iter().any(|cloud| name.starts_with(cloud))
    };
    let all = providers().iter();
    all.filter(move |provider| !is_cloud(&provider.name))
}

/// A model for every preset, whose name it has.
fn config_of_presets(mock: &Mock) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n"
    );
    for provider in plain_presets() {
        let formats = formats_at(mock, provider);
        text += &format!(
            "  - {{provider: {}, formats: {{{formats}}}}}\n",
            provider.name
        );
    }
    text += "models:\n";
    for provider in plain_presets() {
        let name = &provider.name;
        text += &format!("  - {{id: {name}, upstreams: [{{name: {name}}}]}}\n");
    }
    text
}

fn start_presets(mock: &Mock) -> Gateway {
    Gateway::start_with(&config_of_presets(mock), |command| {
        for name in providers().iter().flat_map(|provider| &provider.keys) {
            command.env(name, format!("key-in-{name}"));
        }
    })
}

#[tokio::test]
async fn every_preset_serves_clients_of_every_format() {
    let mock = Mock::start();
    let gateway = start_presets(&mock);
    for provider in plain_presets() {
        let name = &provider.name;
        let spoken: Vec<&str> = provider.formats.iter().map(|(of, _)| of.name()).collect();
        for (client, _) in FORMATS {
            let (path, body) = request(client, name, "mock:echo", false);
            let response = post(gateway.url(&path), body.to_string()).await;
            let echo = echoed_request(client, &response);
            // The client's own format where the provider speaks it, else the first of the preset.
            let expected = if spoken.contains(&client) {
                client
            } else {
                spoken[0]
            };
            let path = match name.as_str() {
                "bedrock" => "/model/bedrock/invoke".to_owned(),
                _ => path_of(expected, name),
            };
            assert_eq!(echo["path"], path, "{name}, {client}");
            let header = provider.key_header.as_deref().unwrap_or("authorization");
            let key = provider.keys.first().map(|key| match &provider.key_header {
                Some(_) => format!("key-in-{key}"),
                None => format!("Bearer key-in-{key}"),
            });
            let sent = echo["headers"][header].as_str().map(str::to_owned);
            assert_eq!(sent, key, "{name}, {client}");
            for (header, value) in &provider.headers {
                assert_eq!(echo["headers"][header], **value, "{name}");
            }
            assert!(!gateway_key_in(&echo), "{name}, {client}");
        }
    }
}

fn gateway_key_in(echo: &Value) -> bool {
    echo.to_string().contains(KEY)
}

#[tokio::test]
async fn fields_that_a_provider_refuses_are_removed_and_reported() {
    let mock = Mock::start();
    let gateway = start_presets(&mock);
    let body = json!({
        "model": "mistral", "max_completion_tokens": 77, "store": false, "metadata": {"a": "b"},
        "messages": [{"role": "user", "name": "Ann", "content": "mock:echo"}],
    });
    let response = post(gateway.url("/v1/chat/completions"), body.to_string()).await;
    let echo = echoed_request("chat", &response);
    let sent: Value = serde_json::from_str(echo["body"].as_str().expect("a body")).expect("JSON");
    assert_eq!(
        sent,
        json!({
            "model": "mistral", "max_tokens": 77,
            "messages": [{"role": "user", "content": "mock:echo"}],
        })
    );
    let dropped = response.header("x-omniglot-dropped");
    assert_eq!(dropped, "messages[0].name, metadata, store");

    let body = json!({
        "model": "mistral", "input": "mock:echo", "metadata": {"a": "b"}, "max_output_tokens": 77,
        "top_logprobs": 3, "include": ["message.output_text.logprobs"],
    });
    let response = post(gateway.url("/v1/responses"), body.to_string()).await;
    let echo = echoed_request("responses", &response);
    let sent: Value = serde_json::from_str(echo["body"].as_str().expect("a body")).expect("JSON");
    assert_eq!(sent["max_tokens"], 77);
    for refused in ["metadata", "logprobs", "top_logprobs", "store"] {
        assert_eq!(sent[refused], Value::Null, "{sent}");
    }
    let dropped = response.header("x-omniglot-dropped");
    assert!(dropped.contains("metadata"), "{dropped}");
    assert!(dropped.contains("top_logprobs"), "{dropped}");
}

/// The text of a chat stream.
fn chat_stream_text(stream: &str) -> String {
    let events = sse_events(stream).into_iter();
    let chunks =
        events.filter_map(|(_, data): (String, String)| serde_json::from_str::<Value>(&data).ok());
    let deltas = chunks.filter_map(|chunk| {
        let text = &chunk["choices"][0]["delta"]["content"];
        text.as_str().map(str::to_owned)
    });
    deltas.collect()
}

#[tokio::test]
async fn the_limit_of_the_output_has_the_name_that_the_provider_knows() {
    let mock = Mock::start();
    let gateway = start_presets(&mock);
    for (model, field) in [
        ("deepseek", "max_tokens"),
        ("openrouter", "max_tokens"),
        ("mistral", "max_tokens"),
        ("openai", "max_completion_tokens"),
    ] {
        for limits in [
            json!({"max_completion_tokens": 7}),
            json!({"max_completion_tokens": 7, "max_tokens": null}),
        ] {
            let (path, mut body) = request("chat", model, "mock:echo", false);
            for (name, limit) in limits.as_object().expect("an object") {
                body[name] = limit.clone();
            }
            let echo = echoed_request("chat", &post(gateway.url(&path), body.to_string()).await);
            let sent = echo["body"].as_str().expect("a body");
            let sent: Value = serde_json::from_str(sent).expect("JSON");
            assert_eq!(sent[field], 7, "{model}: {sent}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_refuses_stream_options_gets_none() {
    let mock = Mock::start();
    let gateway = start_presets(&mock);
    for (model, is_sent, dropped) in [("cohere", false, "stream_options"), ("openai", true, "")] {
        let (path, mut body) = request("chat", model, "mock:echo", true);
        body["stream_options"] = json!({"include_usage": true});
        for (body, dropped) in [
            (body.to_string(), dropped),
            // What the gateway would add by itself is not missed by the client.
            (request("chat", model, "mock:echo", true).1.to_string(), ""),
        ] {
            let response = post(gateway.url(&path), body).await;
            assert_eq!(response.status, 200, "{model}");
            let echo = chat_stream_text(response.text());
            assert!(echo.contains("/v1/chat/completions"), "{echo}");
            assert_eq!(echo.contains("stream_options"), is_sent, "{echo}");
            assert_eq!(response.header("x-omniglot-dropped"), dropped, "{model}");
        }
    }
}

#[tokio::test]
async fn an_upstream_of_several_formats_is_one_upstream() {
    let mock = Mock::start();
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n  - name: both\n    formats: {{messages: \"http://{0}\", chat: \"http://{0}/v1\"}}\n\
         \x20   breaker: {{failures: 2, open_for: 1h}}\n\
         models: [{{id: m, upstreams: [{{name: both}}]}}]\n",
        mock.address
    );
    let gateway = Gateway::start(&config);
    for (client, expected) in [
        ("chat", "chat"),
        ("messages", "messages"),
        ("native", "messages"),
        ("responses", "messages"),
    ] {
        let (path, body) = request(client, "m", "mock:echo", false);
        let response = post(gateway.url(&path), body.to_string()).await;
        let echo = echoed_request(client, &response);
        assert_eq!(echo["path"], path_of(expected, "m"), "{client}");
        assert_eq!(response.header("x-omniglot-upstream"), "both");
    }
    // Its failures count together, whatever the format.
    for client in ["chat", "messages"] {
        let (path, body) = request(client, "m", "mock:error=500", false);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 500, "{client}");
    }
    let open = gateway.metric("omniglot_upstream_breaker_open").await;
    let expected = r#"omniglot_upstream_breaker_open{upstream="both",model="m"} 1"#;
    assert!(open.iter().any(|line| line == expected), "{open:?}");
}

#[test]
fn the_command_line_lists_the_presets() {
    let output = omniglot().arg("providers").output().expect("it runs");
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).expect("text");
    for provider in providers() {
        assert!(table.contains(&format!("| {} ", provider.name)), "{table}");
        for key in &provider.keys {
            assert!(table.contains(key.as_str()), "{key}");
        }
    }
    let refused = omniglot().args(["providers", "-c", "x.yaml"]).output();
    assert_eq!(refused.expect("it runs").status.code(), Some(2));
}

#[tokio::test]
async fn one_word_is_an_upstream() {
    // Nothing is sent to the provider: the model is unknown.
    let config = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [openai]\nmodels: [{{id: gpt, upstreams: [{{name: openai}}]}}]\n"
    );
    let gateway = Gateway::start_with(&config, |command| {
        command.env("OPENAI_API_KEY", "key-of-openai");
    });
    let (path, body) = request("chat", "none", "hello", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 404);
}

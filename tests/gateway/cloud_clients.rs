//! Clients of Azure OpenAI and of Vertex AI: their paths, headers and bodies, on upstreams of every format.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, echoed_request, every_format_config, send,
};
use serde_json::{Value, json};

async fn post(url: String, body: &Value) -> Response {
    let request = client().post(url).header("api-key", KEY);
    send(request.json(body)).await
}

#[tokio::test]
async fn a_deployment_in_the_path_is_the_model() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (upstream, _) in FORMATS {
        for (body, name) in [
            (json!({"model": "gpt-4o"}), "another model in the body"),
            (json!({}), "no model in the body"),
            (json!({"model": format!("other-{upstream}")}), "the same"),
        ] {
            let mut body = body;
            body["messages"] = json!([{"role": "user", "content": "mock:echo"}]);
            let path = format!("/openai/deployments/other-{upstream}/chat/completions");
            let url = gateway.url(&format!("{path}?api-version=2024-10-21"));
            let response = post(url, &body).await;
            let echo = echoed_request("chat", &response);
            let text = echo.to_string();
            assert!(
                text.contains(&format!("theirs-{upstream}")),
                "{name}: {text}"
            );
            assert!(!text.contains("gpt-4o"), "{name}: {text}");
            assert!(!text.contains("api-version"), "{name}: {text}");
            assert!(!text.contains(KEY), "{name}: {text}");
            let model = response.json()["model"].clone();
            assert_eq!(model, format!("other-{upstream}"), "{name}");
        }
    }
}

#[tokio::test]
async fn the_other_paths_are_those_of_the_formats() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let chat = json!({"model": "same-chat", "messages": [{"role": "user", "content": "Hi"}]});
    let responses = json!({"model": "same-chat", "input": "Hi"});
    for (path, body) in [
        ("/openai/v1/chat/completions", &chat),
        ("/openai/responses?api-version=preview", &responses),
        ("/openai/v1/responses", &responses),
    ] {
        let response = post(gateway.url(path), body).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text());
    }
    for path in ["/openai/models?api-version=2024-10-21", "/openai/v1/models"] {
        let request = client().get(gateway.url(path)).header("api-key", KEY);
        let listed = send(request).await.json();
        assert!(
            listed["data"].as_array().is_some_and(|all| !all.is_empty()),
            "{listed}"
        );
    }
}

#[tokio::test]
async fn a_deployment_opens_nothing_that_the_key_may_not_use() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let body = json!({"model": "same-chat", "messages": [{"role": "user", "content": "Hi"}]});
    let ask = async |path: &str| {
        let request = client()
            .post(gateway.url(path))
            .header("api-key", "key-of-some");
        send(request.json(&body)).await.status
    };
    assert_eq!(
        ask("/openai/deployments/same-chat/chat/completions").await,
        200
    );
    // The body names a model that the key may use; the path counts.
    assert_eq!(
        ask("/openai/deployments/other-chat/chat/completions").await,
        403
    );
    for path in [
        "/openai/deployments/same-chat",
        "/openai/deployments/same-chat/v1/chat/completions",
        "/openai/deployments//chat/completions",
        "/openai/deployments/same-chat/chat/completions/",
        "/openai/assistants",
        "/openai/v1/v1/chat/completions",
    ] {
        let status = ask(path).await;
        assert!(matches!(status, 400 | 404), "{path}: {status}");
    }
    let twice = r#"{"model":"same-chat","model":"x","messages":[]}"#;
    let url = gateway.url("/openai/deployments/same-chat/chat/completions");
    let request = client().post(url).header("api-key", KEY);
    assert_eq!(send(request.body(twice)).await.status, 400);
}

/// A path of Vertex AI.
fn vertex(publisher: &str, asked: &str) -> String {
    format!("/v1/projects/p/locations/us-east5/publishers/{publisher}/models/{asked}")
}

async fn post_vertex(url: String, body: &Value) -> Response {
    send(client().post(url).bearer_auth(KEY).json(body)).await
}

#[tokio::test]
async fn a_model_in_a_path_of_vertex_is_the_model() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (upstream, _) in FORMATS {
        let claude = |operator: &str| vertex("anthropic", &format!("other-{upstream}:{operator}"));
        let mut body = json!({
            "anthropic_version": "vertex-2023-10-16",
            "max_tokens": 64,
            "messages": [{"role": "user", "content": "mock:echo"}],
        });
        let response = post_vertex(gateway.url(&claude("rawPredict")), &body).await;
        let echo = echoed_request("messages", &response).to_string();
        assert!(echo.contains(&format!("theirs-{upstream}")), "{echo}");
        assert!(!echo.contains("vertex-2023"), "{echo}");
        body["stream"] = json!(true);
        let response = post_vertex(gateway.url(&claude("streamRawPredict")), &body).await;
        assert!(
            response.text().contains("message_stop"),
            "{}",
            response.text()
        );

        let gemini = |operator: &str| vertex("google", &format!("other-{upstream}:{operator}"));
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "mock:echo"}]}]});
        let response = post_vertex(gateway.url(&gemini("generateContent")), &body).await;
        let echo = echoed_request("native", &response).to_string();
        assert!(echo.contains(&format!("theirs-{upstream}")), "{echo}");
        let stream = gemini("streamGenerateContent?alt=sse");
        let response = post_vertex(gateway.url(&stream), &body).await;
        assert!(response.text().contains("STOP"), "{}", response.text());
    }
}

#[tokio::test]
async fn tokens_are_counted_as_clients_of_vertex_ask() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let body = json!({
        "anthropic_version": "vertex-2023-10-16",
        "model": "same-messages",
        "messages": [{"role": "user", "content": "one two three"}],
    });
    let url = gateway.url(&vertex("anthropic", "count-tokens:rawPredict"));
    let counted = post_vertex(url, &body).await;
    assert!(
        counted.json()["input_tokens"].as_u64() > Some(0),
        "{}",
        counted.text()
    );
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "one two three"}]}]});
    let url = gateway.url(&vertex("google", "same-native:countTokens"));
    let counted = post_vertex(url, &body).await;
    assert!(
        counted.json()["totalTokens"].as_u64() > Some(0),
        "{}",
        counted.text()
    );
}

#[tokio::test]
async fn errors_for_clients_of_vertex_are_those_of_their_format() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9});
    let url = gateway.url(&vertex("anthropic", "nobody:rawPredict"));
    let refused = post_vertex(url, &body).await;
    assert_eq!(
        (refused.status, &refused.json()["type"]),
        (404, &json!("error"))
    );
    let url = gateway.url(&vertex("google", "nobody:generateContent"));
    let refused = post_vertex(url, &json!({"contents": []})).await;
    assert_eq!(refused.json()["error"]["status"], "NOT_FOUND");
    // The body names a model that the key may use; the path counts.
    let body = json!({"model": "same-chat", "max_tokens": 9, "messages": []});
    let url = gateway.url(&vertex("anthropic", "other-chat:rawPredict"));
    let request = client().post(url).bearer_auth("key-of-some");
    assert_eq!(send(request.json(&body)).await.status, 403);
}

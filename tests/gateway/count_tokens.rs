//! Token counting for clients of each format that has it, on upstreams of every format.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, every_format_config,
    gateway_with_fixed_responses, post, response_head, send,
};
use serde_json::{Value, json};

const CLIENTS: [&str; 3] = ["messages", "native", "responses"];

fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let upstreams = FORMATS.iter().map(|(upstream, _)| *upstream);
    upstreams.flat_map(|upstream| CLIENTS.map(|client| (client, upstream)))
}

fn path(client: &str, model: &str) -> String {
    match client {
        "messages" => "/v1/messages/count_tokens".to_owned(),
        "native" => format!("/v1beta/models/{model}:countTokens"),
        _ => "/v1/responses/input_tokens".to_owned(),
    }
}

fn request_body(client: &str, model: &str, prompt: &str) -> Value {
    match client {
        "messages" => json!({"model": model, "messages": [{"role": "user", "content": prompt}]}),
        "native" => json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]}),
        _ => json!({"model": model, "input": prompt}),
    }
}

#[tokio::test]
async fn a_count_names_the_model_of_the_path() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (named, status) in [("models/same-native", 200), ("models/other", 400)] {
        let contents = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
        let body = json!({"generateContentRequest": {"model": named, "contents": contents}});
        let response = send_request(&gateway, "native", "same-native", &body).await;
        assert_eq!(response.status, status, "{named}: {}", response.text());
        if status == 400 {
            let message = response.error("native");
            assert!(
                message.contains("must be the model of the path"),
                "{message}"
            );
        }
    }
}

/// Counts are held to the models of a key as all requests are.
#[tokio::test]
async fn a_count_names_no_second_model_for_a_key_with_models() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let contents = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
    for (body, field) in [
        (json!({"contents": contents}), None),
        (
            json!({"generateContentRequest": {"model": "models/same-native", "contents": contents,
                "tools": [{"functionDeclarations": [{"name": "model", "parameters": {"model": 1}}]}]}}),
            None,
        ),
        (
            json!({"contents": contents, "models": ["other"]}),
            Some("models"),
        ),
        (
            json!({"contents": contents, "extra_body": {"model": "other"}}),
            Some("extra_body"),
        ),
        (
            json!({"generateContentRequest": {"contents": contents}, "models": ["other"]}),
            Some("models"),
        ),
        (
            json!({"generateContentRequest": {"contents": contents, "models": ["other"]}}),
            Some("generateContentRequest.models"),
        ),
        (
            json!({"generate_content_request": {"contents": contents, "tools": [{"x": {"model": "other"}}]}}),
            Some("generate_content_request.tools[0].x.model"),
        ),
    ] {
        let url = gateway.url(&path("native", "same-native"));
        let asked = client().post(url).bearer_auth("key-of-some");
        let response = send(asked.json(&body)).await;
        let Some(field) = field else {
            assert_eq!(response.status, 200, "{body}: {}", response.text());
            continue;
        };
        assert_eq!(response.status, 400, "{body}: {}", response.text());
        let message = response.error("native");
        let refusal = format!("{field}: the API key `some` may use some models only");
        assert!(message.contains(&refusal), "{body}: {message}");
    }
}

async fn send_request(gateway: &Gateway, client: &str, model: &str, body: &Value) -> Response {
    post(gateway.url(&path(client, model)), body.to_string()).await
}

/// The number, in an answer that must have the client's shape and nothing more.
fn token_count(client: &str, response: &Response) -> u64 {
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), "application/json");
    let body = response.json();
    let field = match client {
        "native" => "totalTokens",
        _ => "input_tokens",
    };
    let number = body[field].as_u64().unwrap_or_else(|| panic!("{body}"));
    let whole = match client {
        "responses" => json!({"object": "response.input_tokens", field: number}),
        _ => json!({field: number}),
    };
    assert_eq!(body, whole);
    number
}

/// Fails unless the answer says that nobody was asked for the number.
fn assert_estimated(client: &str, response: &Response, adjusted: &str) {
    assert!(token_count(client, response) > 0);
    assert_eq!(response.header("x-omniglot-estimated"), "true");
    assert_eq!(response.header("x-omniglot-adjusted"), adjusted);
    assert_eq!(response.header("x-omniglot-upstream"), "");
    assert_eq!(response.header("x-omniglot-attempts"), "");
}

fn own_path(client: &str) -> &'static str {
    match client {
        "native" => "totalTokens",
        _ => "input_tokens",
    }
}

#[tokio::test]
async fn every_client_format_with_token_counting_works_on_every_upstream() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (client, upstream) in pairs() {
        let model = format!("other-{upstream}");
        let body = request_body(client, &model, "one two three");
        let response = send_request(&gateway, client, &model, &body).await;
        if upstream == "chat" {
            assert_estimated(client, &response, own_path(client));
            continue;
        }
        assert_eq!(token_count(client, &response), 3, "{client} {upstream}");
        let name = format!("mock-{upstream}");
        assert_eq!(response.header("x-omniglot-upstream"), name);
        assert_eq!(response.header("x-omniglot-attempts"), "1");
        for absent in ["adjusted", "dropped", "estimated"] {
            assert_eq!(response.header(&format!("x-omniglot-{absent}")), "");
        }
    }
}

const IMAGE: &str = "iVBORw0KGgo=";

/// A question with a system prompt, an image, a tool, and words on how to answer.
fn rich(client: &str, model: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    match client {
        "messages" => json!({"model": model, "system": "Be very brief.",
        "tools": [{"name": "f", "input_schema": schema}], "tool_choice": {"type": "auto"},
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "one two three"},
            {"type": "image", "source":
                {"type": "base64", "media_type": "image/png", "data": IMAGE}},
        ]}]}),
        "native" => json!({"generateContentRequest": {"model": format!("models/{model}"),
        "systemInstruction": {"parts": [{"text": "Be very brief."}]},
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}],
        "generationConfig": {"temperature": 0.5, "seed": 7, "maxOutputTokens": 5},
        "contents": [{"role": "user", "parts": [
            {"text": "one two three"},
            {"inlineData": {"mimeType": "image/png", "data": IMAGE}},
        ]}]}}),
        _ => json!({"model": model, "instructions": "Be very brief.",
        "tools": [{"type": "function", "name": "f", "parameters": schema, "strict": false}],
        "input": [{"role": "user", "content": [
            {"type": "input_text", "text": "one two three"},
            {"type": "input_image", "image_url": format!("data:image/png;base64,{IMAGE}"),
             "detail": "auto"},
        ]}]}),
    }
}

#[tokio::test]
async fn system_prompts_tools_and_images_are_counted_without_loss() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let strict = config.replace("server: {", "server: {on_unsupported: reject, ");
    let gateway = Gateway::start(&strict);
    for (client, upstream) in pairs() {
        let model = format!("other-{upstream}");
        let response = send_request(&gateway, client, &model, &rich(client, &model)).await;
        if upstream == "chat" {
            assert_estimated(client, &response, own_path(client));
            assert!(token_count(client, &response) > 500, "{}", response.text());
        } else {
            // Three words, three more, an image and a tool.
            assert_eq!(token_count(client, &response), 8, "{client} {upstream}");
            assert_eq!(response.header("x-omniglot-adjusted"), "");
        }
    }
}

#[tokio::test]
async fn losses_are_reported_or_refused() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&config);
    let strict = Gateway::start(&config.replace("server: {", "server: {on_unsupported: reject, "));
    for upstream in ["chat", "messages", "responses"] {
        let model = format!("same-{upstream}");
        let mut body = rich("native", &model);
        body["generateContentRequest"]["safetySettings"] = json!([]);
        let path = "generateContentRequest.safetySettings";
        let response = send_request(&gateway, "native", &model, &body).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-omniglot-dropped"), path, "{upstream}");
        let response = send_request(&strict, "native", &model, &body).await;
        assert_eq!(response.status, 400, "{upstream}: {}", response.text());
        assert!(
            response.error("native").contains(path),
            "{}",
            response.text()
        );
    }
    // Content without a counterpart is refused wherever it could not be sent.
    let film = json!({"contents": [{"parts": [
        {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}]}]});
    for upstream in ["chat", "messages", "responses"] {
        let response = send_request(&gateway, "native", &format!("same-{upstream}"), &film).await;
        assert_eq!(response.status, 400, "{upstream}: {}", response.text());
        let message = response.error("native");
        assert!(message.contains("contents[0].parts[0]"), "{message}");
    }
}

#[tokio::test]
async fn invalid_requests_are_refused_in_the_clients_format() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (client, upstream) in pairs() {
        let model = format!("same-{upstream}");
        let url = gateway.url(&path(client, &model));
        let mut wrong = request_body(client, &model, "hi");
        for turns in ["messages", "contents", "input"] {
            if wrong[turns].is_null() {
                continue;
            }
            wrong[turns] = json!(7);
            let response = post(url.clone(), wrong.to_string()).await;
            assert_eq!(response.status, 400, "{client} {upstream}");
            assert!(
                response.error(client).contains(turns),
                "{}",
                response.text()
            );
        }
        for body in ["", "[]", "{\"model\": \"m\", ", "7"] {
            let response = post(url.clone(), body).await;
            assert_eq!(response.status, 400, "{client} {upstream} {body}");
            response.error(client);
        }
    }
}

#[tokio::test]
async fn errors_of_the_upstream_have_the_clients_shape() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (client, upstream) in pairs().filter(|(_, upstream)| *upstream != "chat") {
        let model = format!("same-{upstream}");
        for status in [400, 422, 429, 500] {
            let body = request_body(client, &model, &format!("mock:error={status}"));
            let response = send_request(&gateway, client, &model, &body).await;
            assert_eq!(response.status, status, "{client} {upstream}");
            response.error(client);
        }
        // An error without a status means what its words mean, and those of one format are vague.
        let message = if upstream == "responses" { 502 } else { 500 };
        for (word, status) in [
            ("status_200_error", message),
            ("html", 502),
            ("garbage", 502),
            ("empty", 502),
        ] {
            let body = request_body(client, &model, &format!("mock:{word}"));
            let response = send_request(&gateway, client, &model, &body).await;
            assert_eq!(response.status, status, "{client} {upstream} {word}");
            response.error(client);
        }
    }
}

#[tokio::test]
async fn an_upstream_without_token_counting_is_replaced_by_an_estimate() {
    let missing = [
        (
            "404 Not Found",
            "text/html",
            "<html>404 page not found</html>",
        ),
        (
            "404 Not Found",
            "application/json",
            r#"{"detail":"Not Found"}"#,
        ),
        (
            "404 Not Found",
            "application/json",
            r#"{"error":{"code":404,"status":"NOT_FOUND","message":"models/case-2 is not found, or is not supported for countTokens, count_tokens, input_tokens."}}"#,
        ),
        ("405 Method Not Allowed", "application/json", "{}"),
        ("501 Not Implemented", "application/json", "{}"),
    ];
    for upstream in CLIENTS {
        let cases =
            missing.map(|(status, kind, body)| (upstream, response_head(status, kind), body));
        let gateway = gateway_with_fixed_responses(&cases);
        for number in 0..missing.len() {
            for client in CLIENTS {
                let model = format!("case-{number}");
                let body = request_body(client, &model, "one two three");
                let response = send_request(&gateway, client, &model, &body).await;
                assert_estimated(client, &response, own_path(client));
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_model_is_not_estimated() {
    let body = r#"{"error":{"type":"not_found_error","message":"model: case-0"}}"#;
    for upstream in CLIENTS {
        let gateway = gateway_with_fixed_responses(&[(
            upstream,
            response_head("404 Not Found", "application/json"),
            body,
        )]);
        for client in CLIENTS {
            let body = request_body(client, "case-0", "one two three");
            let response = send_request(&gateway, client, "case-0", &body).await;
            assert_eq!(response.status, 404, "{client} {upstream}");
            assert!(
                response.text().contains("model: case-0"),
                "{}",
                response.text()
            );
            assert_eq!(response.header("x-omniglot-upstream"), "puppet-0");
        }
    }
    // What only the upstream itself could look up is not estimated, nor is it asked for what this key was not given.
    let gateway = gateway_with_fixed_responses(&[(
        "responses",
        response_head("501 Not Implemented", "text/plain"),
        "no",
    )]);
    let body = json!({"model": "case-0", "previous_response_id": "resp_1"});
    let response = send_request(&gateway, "responses", "case-0", &body).await;
    assert_eq!(response.status, 400, "{}", response.text());
    response.error("responses");
}

#[tokio::test]
async fn failover_keeps_the_order_of_upstreams() {
    let mock = Mock::start();
    let config = every_format_config(mock.address)
        + "  - {id: first, upstreams: [{name: mock-native, model: \"m+error=503\"}], fallbacks: [same-messages]}\n"
        + "  - {id: last, upstreams: [{name: mock-native, model: \"m+error=503\"}], fallbacks: [same-chat, same-messages]}\n"
        + "  - {id: none, upstreams: [{name: mock-chat}], fallbacks: [same-responses]}\n";
    let gateway = Gateway::start(&config);
    for client in CLIENTS {
        let body = request_body(client, "first", "one two three");
        let response = send_request(&gateway, client, "first", &body).await;
        assert_eq!(token_count(client, &response), 3, "{client}");
        assert_eq!(response.header("x-omniglot-upstream"), "mock-messages");
        assert_eq!(response.header("x-omniglot-attempts"), "2");
        for model in ["last", "none"] {
            let body = request_body(client, model, "one two three");
            let response = send_request(&gateway, client, model, &body).await;
            assert_estimated(client, &response, own_path(client));
        }
    }
    // A chat upstream that could not be told everything makes room for one that could.
    let film = json!({"contents": [{"parts": [
        {"text": "a film"}, {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}]}]});
    let config =
        config + "  - {id: film, upstreams: [{name: mock-chat}], fallbacks: [same-native]}\n";
    let gateway = Gateway::start(&config);
    let response = send_request(&gateway, "native", "film", &film).await;
    assert_eq!(token_count("native", &response), 3);
    assert_eq!(response.header("x-omniglot-upstream"), "mock-native");
}

#[tokio::test]
async fn the_model_of_a_wrapped_request_is_renamed_for_its_upstream() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for model in ["same-native", "other-native"] {
        let response = send_request(&gateway, "native", model, &rich("native", model)).await;
        assert_eq!(token_count("native", &response), 8, "{model}");
    }
    // The mock takes no other name than its own.
    let direct = mock.url(&path("native", "theirs-native"));
    let body = rich("native", "other-native");
    assert_eq!(post(direct, body.to_string()).await.status, 400);
}

#[tokio::test]
async fn estimates_are_logged_without_an_upstream() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = config.replace("server: {", "server: {access_log: json, ");
    let gateway = Gateway::start(&config);
    let body = request_body("messages", "same-chat", "one two three");
    let response = send_request(&gateway, "messages", "same-chat", &body).await;
    assert_estimated("messages", &response, "input_tokens");
    let line = gateway.process.line_with("count_tokens");
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["upstream"], Value::Null);
    assert_eq!(
        (&line["attempts"], &line["status"]),
        (&json!(0), &json!(200))
    );
    assert!(!line.to_string().contains(KEY));
}

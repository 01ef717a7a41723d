//! AWS Bedrock as an upstream: signed requests, models in the path, and event streams of AWS.

mod credentials;
mod streams;

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, echoed_request, error_message, is_end, is_error, post, request,
    response_text, stream_events,
};
use serde_json::{Value, json};

/// An id with all that needs an escape in a path.
const ARN: &str =
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-v1:0";
const ARN_IN_PATH: &str = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-v1%3A0";

/// Removes what the environment of the tests may know of AWS.
fn without_aws(command: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent");
    command.env("AWS_EC2_METADATA_DISABLED", "true");
}

/// Keys in the environment, as most containers have them.
fn with_keys(command: &mut Command) {
    without_aws(command);
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    command.env("AWS_SECRET_ACCESS_KEY", "secret-of-the-environment");
    command.env("AWS_SESSION_TOKEN", "token-of-the-environment");
    command.env("AWS_REGION", "eu-central-1");
}

/// A gateway with the model `claude` at this address in place of Bedrock.
fn config(address: &str, more: &str) -> String {
    format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{provider: bedrock, base_url: \"{address}\", breaker: off, {more}}}]\n\
         models:\n  - {{id: claude, upstreams: [{{name: bedrock, model: \"{ARN}\"}}]}}\n  \
         - {{id: profile, upstreams: [{{name: bedrock, model: \"us.anthropic.claude-v1:0\"}}]}}\n"
    )
}

fn start(mock: &Mock) -> Gateway {
    let address = format!("http://{}", mock.address);
    Gateway::start_with(&config(&address, ""), with_keys)
}

#[tokio::test]
async fn clients_of_every_format_get_text_as_json_and_as_a_stream() {
    let mock = Mock::start();
    let gateway = start(&mock);
    for (client, _) in FORMATS {
        let (path, body) = request(client, "claude", "héllo wörld 🦀", false);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 200, "{client}: {}", response.text());
        let text = response_text(client, &response.json());
        assert_eq!(text, "You said: héllo wörld 🦀");

        let (path, body) = request(client, "claude", "héllo wörld 🦀", true);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 200, "{client}: {}", response.text());
        assert_eq!(response.header("content-type"), "text/event-stream");
        let events = stream_events(client, response.text());
        assert!(events.iter().any(|event| is_end(client, event)), "{client}");
        let joined = response.text().replace("\\u00f6", "ö");
        for word in ["héllo", "wörld", "🦀"] {
            assert!(joined.contains(word), "{client}: {joined}");
        }
        assert!(!joined.contains("amazon-bedrock"), "{client}: {joined}");
    }
}

/// What passes through is what a client of the messages API would get from Anthropic itself.
#[tokio::test]
async fn a_stream_for_a_messages_client_has_the_events_of_the_messages_api() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let (path, body) = request("messages", "claude", "one two", true);
    let response = post(gateway.url(&path), body.to_string()).await;
    let events = stream_events("messages", response.text());
    for (name, data) in &events {
        assert_eq!(data["type"], **name, "{data}");
    }
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.first(), Some(&"message_start"));
    assert_eq!(names[names.len() - 2..], ["message_delta", "message_stop"]);
    assert_eq!(
        events.last().expect("an end").1,
        json!({"type": "message_stop"})
    );
    assert_eq!(events[0].1["message"]["model"], "claude");
}

#[tokio::test]
async fn tool_calls_arrive_in_every_format() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    for (client, _) in FORMATS {
        for stream in [false, true] {
            let (path, mut body) = request(client, "claude", "mock:tool=weather", stream);
            body["tools"] = match client {
                "chat" => {
                    json!([{"type": "function", "function": {"name": "weather", "parameters": schema}}])
                }
                "messages" => json!([{"name": "weather", "input_schema": schema}]),
                "native" => {
                    json!([{"functionDeclarations": [{"name": "weather", "parameters": schema}]}])
                }
                _ => json!([{"type": "function", "name": "weather", "parameters": schema}]),
            };
            let response = post(gateway.url(&path), body.to_string()).await;
            assert_eq!(response.status, 200, "{client}: {}", response.text());
            assert!(
                response.text().contains("weather"),
                "{client}: {}",
                response.text()
            );
            assert!(
                response.text().contains("city"),
                "{client}: {}",
                response.text()
            );
        }
    }
}

/// The request as the mock got it.
async fn echo(
    gateway: &Gateway,
    model: &str,
    headers: &[(&str, &str)],
    more: &[(&str, Value)],
) -> Value {
    let (path, mut body) = request("messages", model, "mock:echo", false);
    for (name, value) in more {
        body[*name] = value.clone();
    }
    let client = omniglot_test_support::client();
    let mut sent = client.post(gateway.url(&path)).bearer_auth(KEY);
    for (name, value) in headers {
        sent = sent.header(*name, *value);
    }
    let response = omniglot_test_support::send(sent.body(body.to_string())).await;
    echoed_request("messages", &response)
}

#[tokio::test]
async fn a_request_is_signed_and_has_model_and_version_where_bedrock_takes_them() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let betas = [
        ("anthropic-beta", "a-1, b-2"),
        ("anthropic-version", "2023-06-01"),
    ];
    let seen = echo(&gateway, "claude", &betas, &[]).await;
    assert_eq!(seen["path"], format!("/model/{ARN_IN_PATH}/invoke"));
    let body: Value = serde_json::from_str(seen["body"].as_str().expect("a body")).expect("JSON");
    assert_eq!(
        body,
        json!({
            "anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["a-1", "b-2"],
            "max_tokens": 64, "messages": [{"role": "user", "content": "mock:echo"}],
        })
    );
    let headers = &seen["headers"];
    let authorization = headers["authorization"].as_str().expect("a signature");
    let date = &headers["x-amz-date"].as_str().expect("a date")[..8];
    let expected = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{date}/eu-central-1/bedrock/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature="
    );
    assert!(authorization.starts_with(&expected), "{authorization}");
    assert_eq!(headers["x-amz-security-token"], "token-of-the-environment");
    for absent in ["anthropic-version", "anthropic-beta", "x-api-key"] {
        assert_eq!(headers[absent], Value::Null, "{absent}");
    }
    // A version of the client's own choice stays.
    let seen = echo(
        &gateway,
        "claude",
        &[("anthropic-version", "2026-10-21")],
        &[],
    )
    .await;
    let body: Value = serde_json::from_str(seen["body"].as_str().expect("a body")).expect("JSON");
    assert_eq!(body["anthropic_version"], "2026-10-21");
}

#[tokio::test]
async fn a_bearer_key_wins_over_signatures() {
    let mock = Mock::start();
    let address = format!("http://{}", mock.address);
    let gateway = Gateway::start_with(&config(&address, ""), |command| {
        with_keys(command);
        command.env("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key");
    });
    let seen = echo(&gateway, "claude", &[], &[]).await;
    assert_eq!(seen["headers"]["authorization"], "Bearer bedrock-api-key");
    assert_eq!(seen["headers"]["x-amz-date"], Value::Null);
}

#[tokio::test]
async fn the_other_endpoints_of_bedrock_are_signed_for_their_services() {
    let mock = Mock::start();
    let address = mock.address;
    let gateway = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\nupstreams:\n\
         - {{provider: bedrock-openai, region: us-west-2, base_url: \"http://{address}/openai/v1\"}}\n\
         - {{provider: bedrock-mantle, region: us-west-2, base_url: \"http://{address}/v1\"}}\n\
         - {{provider: bedrock-mantle-anthropic, region: us-west-2, base_url: \"http://{address}/anthropic\"}}\n\
         models:\n\
         - {{id: bedrock-openai, upstreams: [{{name: bedrock-openai}}]}}\n\
         - {{id: bedrock-mantle, upstreams: [{{name: bedrock-mantle}}]}}\n\
         - {{id: bedrock-mantle-anthropic, upstreams: [{{name: bedrock-mantle-anthropic}}]}}\n"
    );
    let gateway = Gateway::start_with(&gateway, with_keys);
    for (model, client, path, service) in [
        (
            "bedrock-openai",
            "chat",
            "/openai/v1/chat/completions",
            "bedrock",
        ),
        (
            "bedrock-openai",
            "responses",
            "/openai/v1/responses",
            "bedrock",
        ),
        (
            "bedrock-openai",
            "messages",
            "/openai/v1/chat/completions",
            "bedrock",
        ),
        (
            "bedrock-mantle",
            "chat",
            "/v1/chat/completions",
            "bedrock-mantle",
        ),
        (
            "bedrock-mantle",
            "responses",
            "/v1/responses",
            "bedrock-mantle",
        ),
        (
            "bedrock-mantle-anthropic",
            "messages",
            "/anthropic/v1/messages",
            "bedrock-mantle",
        ),
        (
            "bedrock-mantle-anthropic",
            "native",
            "/anthropic/v1/messages",
            "bedrock-mantle",
        ),
    ] {
        let (client_path, body) = request(client, model, "mock:echo", false);
        let response = post(gateway.url(&client_path), body.to_string()).await;
        let seen = echoed_request(client, &response);
        assert_eq!(seen["path"], path, "{model} {client}");
        let authorization = seen["headers"]["authorization"]
            .as_str()
            .expect("a signature");
        let scope = format!("/us-west-2/{service}/aws4_request");
        assert!(authorization.contains(&scope), "{authorization}");
    }
}

#[tokio::test]
async fn errors_of_bedrock_are_told_in_the_clients_format() {
    let mock = Mock::start();
    let gateway = start(&mock);
    for (client, _) in FORMATS {
        for stream in [false, true] {
            for (status, expected, says) in [
                (400, 400, true),
                (404, 404, true),
                (424, 500, true),
                (429, 429, true),
                (500, 500, true),
                (503, if client == "messages" { 529 } else { 503 }, true),
                (403, 502, false),
            ] {
                let prompt = format!("mock:error={status},mock-says-no");
                let (path, body) = request(client, "claude", &prompt, stream);
                let response = post(gateway.url(&path), body.to_string()).await;
                let case = format!("{client} {status}: {}", response.text());
                assert_eq!(response.status, expected, "{case}");
                let message = error_message(client, response.status, &response.json());
                assert_eq!(message.contains("mock-says-no"), says, "{case}");
                assert_eq!(response.header("x-amzn-errortype"), "", "{case}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_that_fails_ends_with_an_error_of_the_clients_format() {
    let mock = Mock::start();
    let gateway = start(&mock);
    for (client, _) in FORMATS {
        for fault in [
            "mock:stream_error=2",
            "mock:cut=5",
            "mock:no_end",
            "mock:garbage=5",
        ] {
            let prompt = format!("one two three four {fault}");
            let (path, body) = request(client, "claude", &prompt, true);
            let response = post(gateway.url(&path), body.to_string()).await;
            assert_eq!(
                response.status,
                200,
                "{client} {fault}: {}",
                response.text()
            );
            let events = stream_events(client, response.text());
            let last = events.last().expect("an event");
            assert!(
                is_error(client, last),
                "{client} {fault}: {}",
                response.text()
            );
            assert!(
                !events.iter().any(|event| is_end(client, event)),
                "{client} {fault}"
            );
        }
        let (path, body) = request(client, "claude", "mock:status_200_error", true);
        let response = post(gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 500, "{client}: {}", response.text());
        error_message(client, response.status, &response.json());
    }
}

#[tokio::test]
async fn tokens_are_counted_by_the_model_without_its_geography() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let messages = json!([{"role": "user", "content": "one two three"}]);
    let body = json!({"model": "profile", "messages": messages});
    let url = gateway.url("/v1/messages/count_tokens");
    let response = post(url, body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json(), json!({"input_tokens": 3}));
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "one two three"}]}]});
    let url = gateway.url("/v1beta/models/profile:countTokens");
    let response = post(url, contents.to_string()).await;
    assert_eq!(response.json()["totalTokens"], 3, "{}", response.text());
}

/// A profile's own address has no counter: then the count is an estimate, and says so.
#[tokio::test]
async fn tokens_that_bedrock_does_not_count_are_estimated() {
    let head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nx-amzn-errortype: ValidationException\r\nconnection: close\r\n\r\n";
    let body = br#"{"message":"The provided model doesn't support counting tokens."}"#;
    let address = omniglot_test_support::fixed_response_upstream(vec![[&head[..], body].concat()]);
    let gateway = Gateway::start_with(&config(&format!("http://{address}"), ""), with_keys);
    let messages = json!([{"role": "user", "content": "one two three"}]);
    let body = json!({"model": "claude", "messages": messages});
    let url = gateway.url("/v1/messages/count_tokens");
    let response = post(url, body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(response.json()["input_tokens"].as_u64() > Some(0));
    assert_eq!(response.header("x-omniglot-estimated"), "true");
}

/// One event of Bedrock as a message of its stream.
fn event(json: &Value) -> Vec<u8> {
    let headers = [
        (":event-type", "chunk"),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    let payload = json!({"bytes": STANDARD.encode(json.to_string()), "p": "ab"}).to_string();
    let mut out = Vec::new();
    omniglot::event_stream::encode_event_stream_message(&headers, payload.as_bytes(), &mut out);
    out
}

//! Upstreams whose requests differ from their format: paths, query parameters, and fields in other places.

use omniglot_test_support::{
    Gateway, KEY, RecordedRequest, RecordingServer, client, post, request, send,
};
use serde_json::{Value, json};

const MESSAGE: &str = r#"{"id":"m","type":"message","role":"assistant","model":"c","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}"#;

const STREAM: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}"#,
    "\n\nevent: content_block_start\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":0}"#,
    "\n\nevent: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}"#,
    "\n\nevent: message_stop\n",
    r#"data: {"type":"message_stop"}"#,
    "\n\n",
);

fn messages_upstream() -> RecordingServer {
    RecordingServer::start(|request, _| {
        let is_count = request.line.contains("count");
        match request.line.contains(":stream") {
            true => (200, "text/event-stream", STREAM.to_owned()),
            false if is_count => (200, "application/json", r#"{"input_tokens":7}"#.to_owned()),
            false => (200, "application/json", MESSAGE.to_owned()),
        }
    })
}

fn gateway(upstream: &RecordingServer, settings: &str) -> Gateway {
    let address = upstream.address;
    Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: up, format: messages, base_url: 'http://{address}/base', {settings}}}]\n\
         models: [{{id: 'm*', upstreams: [{{name: up, model: 'c*'}}]}}]\n"
    ))
}

const HOSTED: &str = "project: p-1, location: eu, \
    paths: {generate: '/{project}/{location}/{model}:go', stream: '/{project}/{location}/{model}:stream', \
    count: '/{project}/count'}, \
    query: {api-version: '2024-10-21', x: 'a b&c'}, model_in: path, stream_in: path, \
    version_in: body, version: vertex-2023-10-16, betas_in: body";

fn last(upstream: &RecordingServer) -> RecordedRequest {
    upstream.requests().pop().expect("a request")
}

#[tokio::test]
async fn model_stream_version_and_betas_stand_where_the_upstream_takes_them() {
    let upstream = messages_upstream();
    let gateway = gateway(&upstream, HOSTED);
    // Translated, and passed through.
    for format in ["chat", "messages", "responses", "native"] {
        for stream in [false, true] {
            let (path, body) = request(format, "m@1/2", "hi", stream);
            // A model in a path has its slashes encoded.
            let path = path.replace("m@1/2", "m@1%2F2");
            let response = post(gateway.url(&path), body.to_string()).await;
            assert_eq!(response.status, 200, "{format}: {}", response.text());
            assert!(response.text().contains("hello"), "{}", response.text());
            let sent = last(&upstream);
            let verb = if stream { "stream" } else { "go" };
            let expected =
                format!("POST /base/p-1/eu/c@1%2F2:{verb}?api-version=2024-10-21&x=a%20b%26c");
            assert_eq!(sent.line, expected, "{format}");
            let body = sent.json();
            assert_eq!(body.get("model"), None, "{format}: {body}");
            assert_eq!(body.get("stream"), None, "{format}: {body}");
            let version = match format {
                "messages" => "vertex-2023-10-16",
                _ => "2026-10-21",
            };
            assert_eq!(body["anthropic_version"], version, "{format}");
            assert_eq!(sent.header("anthropic-version"), "");
            assert_eq!(body.get("anthropic_beta"), None);
        }
    }
}

#[tokio::test]
async fn a_clients_version_and_betas_go_into_the_body() {
    let upstream = messages_upstream();
    let gateway = gateway(&upstream, HOSTED);
    let (path, body) = request("messages", "m1", "hi", false);
    let call = client().post(gateway.url(&path)).bearer_auth(KEY);
    let call = call
        .header("anthropic-version", "2026-10-21")
        .header("anthropic-beta", "one, two")
        .header("anthropic-beta", "three");
    let response = send(call.body(body.to_string())).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let sent = last(&upstream);
    let body = sent.json();
    assert_eq!(body["anthropic_version"], "2026-10-21");
    assert_eq!(body["anthropic_beta"], json!(["one", "two", "three"]));
    assert_eq!(sent.header("anthropic-version"), "");
    assert_eq!(sent.header("anthropic-beta"), "");
}

#[tokio::test]
async fn counting_keeps_the_model_where_its_path_has_none() {
    let upstream = messages_upstream();
    let gateway = gateway(&upstream, HOSTED);
    let body = json!({"model": "m1", "messages": [{"role": "user", "content": "hi"}]});
    let path = "/v1/messages/count_tokens";
    let response = post(gateway.url(path), body.to_string()).await;
    assert_eq!(response.json()["input_tokens"], 7);
    let sent = last(&upstream);
    assert!(
        sent.line.starts_with("POST /base/p-1/count?"),
        "{}",
        sent.line
    );
    assert_eq!(sent.json()["model"], "c1");

    // Without a path for it, the gateway estimates.
    let only = "paths: {generate: '/{model}:go'}";
    let gateway = self::gateway(&upstream, only);
    let before = upstream.requests().len();
    let response = post(gateway.url(path), body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(
        response.json()["input_tokens"]
            .as_u64()
            .is_some_and(|count| count > 0)
    );
    assert_eq!(upstream.requests().len(), before);
}

#[tokio::test]
async fn a_name_that_would_leave_its_segment_is_refused() {
    let upstream = messages_upstream();
    let address = upstream.address;
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: up, format: messages, base_url: 'http://{address}', \
         paths: {{generate: '/d/{{deployment}}/messages'}}}}]\n\
         models: [{{id: 'm*', upstreams: [{{name: up, model: '*'}}]}}]\n"
    ));
    let (path, body) = request("messages", "m..", "hi", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(
        response.text().contains("cannot be part of a path"),
        "{}",
        response.text()
    );
    let (path, body) = request("messages", "m../a:b", "hi", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(last(&upstream).line, "POST /d/..%2Fa%3Ab/messages");
}

#[tokio::test]
async fn a_key_in_the_query_is_sent_and_never_shown() {
    let upstream = RecordingServer::start(|request, _| {
        let body = json!({"error": {"message": format!("no {}", request.line), "type": "x"}});
        (400, "application/json", body.to_string())
    });
    let settings = "auth: {query: {name: key, value: 'hush/hush hush'}}, query: {a: b}";
    let gateway = gateway(&upstream, settings);
    let (path, body) = request("messages", "m1", "hi", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    let sent = last(&upstream);
    assert_eq!(
        sent.line,
        "POST /base/v1/messages?a=b&key=hush%2Fhush%20hush"
    );
    assert_eq!(response.status, 400);
    let shown: Value = response.json();
    assert!(!shown.to_string().contains("hush"), "{shown}");
    assert!(shown.to_string().contains("***"), "{shown}");
}

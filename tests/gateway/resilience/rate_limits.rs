//! The rate limits of a key and the concurrency limit of the gateway.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, every_format_config, post, request, send,
};

use crate::bodies::CHAT;

fn limited(mock: &Mock, limits: &str) -> Gateway {
    let open = format!("{{name: all, secret: {KEY}}}");
    let text = every_format_config(mock.address);
    let text = text.replace(
        &open,
        &format!("{{name: all, secret: {KEY}, limits: {{{limits}}}}}"),
    );
    Gateway::start(&text)
}

async fn send_request(gateway: &Gateway, format: &str, prompt: &str, stream: bool) -> Response {
    let (path, body) = request(format, &format!("same-{format}"), prompt, stream);
    post(gateway.url(&path), body.to_string()).await
}

/// The headers in which a format tells of requests: limit, remaining.
fn rate_limit_headers(format: &str, unit: &str) -> Option<[String; 2]> {
    match format {
        "chat" | "responses" => Some([
            format!("x-ratelimit-limit-{unit}"),
            format!("x-ratelimit-remaining-{unit}"),
        ]),
        "messages" => Some([
            format!("anthropic-ratelimit-{unit}-limit"),
            format!("anthropic-ratelimit-{unit}-remaining"),
        ]),
        _ => None,
    }
}

#[tokio::test]
async fn requests_over_the_rate_limit_are_refused_in_the_clients_format() {
    let mock = Mock::start();
    for (format, _) in FORMATS {
        let gateway = limited(&mock, "requests_per_minute: 2");
        for (left, stream) in [("1", false), ("0", true)] {
            let response = send_request(&gateway, format, "hello", stream).await;
            assert_eq!(response.status, 200);
            if let Some([limit, remaining]) = rate_limit_headers(format, "requests") {
                assert_eq!(response.header(&limit), "2", "{format}");
                assert_eq!(response.header(&remaining), left, "{format}");
            }
        }
        let refused = send_request(&gateway, format, "hello", false).await;
        assert_eq!(refused.status, 429, "{format}");
        let message = refused.error(format);
        assert!(
            message.contains("limit of 2 requests per minute"),
            "{message}"
        );
        let wait: u64 = refused.header("retry-after").parse().expect("seconds");
        assert!((1..=30).contains(&wait), "{wait}");
        assert_eq!(refused.header("x-omniglot-attempts"), "");
    }
}

#[tokio::test]
async fn requests_that_need_no_upstream_count_too() {
    let mock = Mock::start();
    for path in [
        "/v1/models",
        "/v1/models/same-chat",
        "/v1/responses/resp_1",
        "/v1/images/tasks",
        "/v1/images/files/1-2",
    ] {
        let gateway = limited(&mock, "requests_per_minute: 2, concurrency: 1");
        let get = async || send(client().get(gateway.url(path)).bearer_auth(KEY)).await;
        for left in ["1", "0"] {
            let response = get().await;
            assert_ne!(response.status, 429, "{path}");
            let remaining = response.header("x-ratelimit-remaining-requests");
            assert_eq!(remaining, left, "{path}");
        }
        let refused = get().await;
        assert_eq!(refused.status, 429, "{path}");
        let message = refused.error("chat");
        assert!(message.contains("2 requests per minute"), "{message}");
        let refused = send_request(&gateway, "chat", "hello", false).await;
        assert_eq!(refused.status, 429, "{path}");
    }
}

#[tokio::test]
async fn a_list_needs_no_free_slot_of_the_key() {
    let mock = Mock::start();
    let limits = "requests_per_minute: 100, concurrency: 1";
    let gateway = limited(&mock, limits);
    let (_, body) = request("chat", "same-chat", "mock:name=held mock:wait=held", true);
    let held = tokio::spawn(post(gateway.url(CHAT), body.to_string()));
    mock.until_seen("held", "waiting", 1).await;
    let models = client().get(gateway.url("/v1/models")).bearer_auth(KEY);
    assert_eq!(send(models).await.status, 200);
    mock.signal("held", 1000).await;
    assert_eq!(held.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn tokens_are_charged_by_the_usage_of_a_response() {
    let mock = Mock::start();
    for stream in [false, true] {
        let gateway = limited(&mock, "tokens_per_minute: 1000");
        let prompt = "mock:usage=700,0,500,0 hello";
        let response = send_request(&gateway, "chat", prompt, stream).await;
        assert_eq!(response.status, 200, "{}", response.text());
        gateway.until_idle().await;
        let refused = send_request(&gateway, "messages", "hello", stream).await;
        assert_eq!(refused.status, 429, "{}", refused.text());
        let message = refused.error("messages");
        assert!(message.contains("1000 tokens per minute"), "{message}");
        assert_eq!(refused.header("anthropic-ratelimit-tokens-remaining"), "0");
    }
}

#[tokio::test]
async fn concurrency_slots_are_released_however_a_request_ends() {
    let mock = Mock::start();
    let gateway = limited(&mock, "concurrency: 1");
    let waiting = |name: &str| {
        let prompt = format!("mock:name={name} mock:wait={name} hello");
        let (_, body) = request("chat", "same-chat", &prompt, true);
        tokio::spawn(post(gateway.url(CHAT), body.to_string()))
    };
    // A client that goes away in the middle of a stream.
    let gone = waiting("gone");
    mock.until_seen("gone", "waiting", 1).await;
    let refused = send_request(&gateway, "native", "hello", false).await;
    assert_eq!(refused.status, 429);
    assert!(
        refused
            .error("native")
            .contains("limit of 1 requests at once")
    );
    gone.abort();
    gateway.until_idle().await;
    // Failures of every sort.
    for prompt in [
        "mock:error=500",
        "mock:cut=0",
        "mock:garbage",
        "mock:stream_error=1",
        "mock:error=400",
    ] {
        for stream in [false, true] {
            send_request(&gateway, "chat", prompt, stream).await;
            gateway.until_idle().await;
        }
    }
    let (path, _) = request("chat", "same-chat", "", false);
    assert_eq!(post(gateway.url(&path), "{").await.status, 400);
    gateway.until_idle().await;
    assert_eq!(
        send_request(&gateway, "chat", "hello", false).await.status,
        200
    );
}

#[tokio::test]
async fn the_gateway_has_its_own_concurrency_limit() {
    let mock = Mock::start();
    let text = every_format_config(mock.address);
    let gateway = Gateway::start(&text.replace("admin: ADMIN", "admin: ADMIN, max_in_flight: 1"));
    let (_, body) = request(
        "chat",
        "same-chat",
        "mock:name=held mock:wait=held hello",
        true,
    );
    let held = tokio::spawn(post(gateway.url(CHAT), body.to_string()));
    mock.until_seen("held", "waiting", 1).await;
    for (format, _) in FORMATS {
        let refused = send_request(&gateway, format, "hello", false).await;
        let expected = if format == "messages" { 529 } else { 503 };
        assert_eq!(refused.status, expected, "{format}");
        assert_eq!(refused.header("retry-after"), "1");
        refused.error(format);
    }
    let models = client().get(gateway.url("/v1/models")).bearer_auth(KEY);
    assert_eq!(send(models).await.status, 200);
    mock.signal("held", 1000).await;
    assert_eq!(held.await.expect("no panic").status, 200);
    gateway.until_idle().await;
    assert_eq!(
        send_request(&gateway, "chat", "hello", false).await.status,
        200
    );
}

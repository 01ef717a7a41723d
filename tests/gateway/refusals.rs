//! Requests that are refused: in the shape of their path, on a connection that stays usable.

mod bodies;
mod http1;

use std::io::{Read as _, Seek as _};
use std::process::Stdio;

use omniglot_test_support::{
    Gateway, KEY, Mock, Response, client, every_format_config, request, send,
};

/// A gateway whose log can be read when all is done.
struct GatewayWithLog {
    gateway: Gateway,
    log: std::fs::File,
    _mock: Mock,
}

impl GatewayWithLog {
    fn start() -> GatewayWithLog {
        let mock = Mock::start();
        let log = tempfile::tempfile().expect("a file");
        let stderr = log.try_clone().expect("the same file");
        let gateway = Gateway::start_with(&every_format_config(mock.address), |command| {
            command.stderr(Stdio::from(stderr));
        });
        GatewayWithLog {
            gateway,
            log,
            _mock: mock,
        }
    }

    /// The gateway still answers, and nothing in it has panicked.
    async fn assert_well(mut self) {
        let (path, body) = request("chat", "same-chat", "hello", false);
        let asked = client().post(self.gateway.url(&path)).bearer_auth(KEY);
        assert_eq!(send(asked.json(&body)).await.status, 200);
        let mut text = String::new();
        self.log.rewind().expect("a file");
        self.log.read_to_string(&mut text).expect("text");
        assert!(!text.contains("panicked"), "{text}");
    }
}

async fn send_request(gateway: &Gateway, method: &str, path: &str) -> Response {
    let method = method.parse().expect("a method");
    let asked = client().request(method, gateway.url(path));
    send(asked.bearer_auth(KEY).json(&serde_json::json!({}))).await
}

#[tokio::test]
async fn an_unknown_path_is_not_found_in_the_format_of_its_prefix() {
    let watched = GatewayWithLog::start();
    for (path, format) in [
        ("/", "chat"),
        ("/v1", "chat"),
        ("/v1/", "chat"),
        ("/v2/chat/completions", "chat"),
        ("/v1/chat/completions/", "chat"),
        ("/v1/chat/completions/x", "chat"),
        ("/V1/chat/completions", "chat"),
        ("//v1/chat/completions", "chat"),
        ("/v1/chat//completions", "chat"),
        ("/v1/embeddings/x", "chat"),
        ("/v1/messagesx", "chat"),
        ("/api", "chat"),
        ("/api/models/x", "chat"),
        ("/healthz", "chat"),
        ("/metrics", "chat"),
        ("/v1/messages/", "messages"),
        ("/v1/messages/batches", "messages"),
        ("/v1/responses/", "responses"),
        ("/v1/responses/resp_1/x", "responses"),
        ("/v1beta", "native"),
        ("/v1beta/", "native"),
        ("/v1beta/corpora", "native"),
        ("/v1beta/models/same-native:predict", "native"),
        ("/v1/models/same-native:predict", "native"),
        ("/v1/models/same-native:generatecontent", "native"),
    ] {
        let response = send_request(&watched.gateway, "POST", path).await;
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        assert!(!response.error(format).is_empty(), "{path}");
        assert!(
            response.header("x-request-id").starts_with("req_"),
            "{path}"
        );
        assert_eq!(response.header("x-omniglot-upstream"), "", "{path}");
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn a_wrong_method_is_refused_with_the_allowed_one() {
    let watched = GatewayWithLog::start();
    for (path, format, allowed) in [
        ("/v1/chat/completions", "chat", "POST"),
        ("/v1/messages", "messages", "POST"),
        ("/v1/messages/count_tokens", "messages", "POST"),
        ("/v1/responses", "responses", "POST"),
        ("/v1/responses/input_tokens", "responses", "POST"),
        (
            "/v1beta/models/same-native:generateContent",
            "native",
            "POST",
        ),
        ("/v1/models/same-native:countTokens", "native", "POST"),
        ("/v1beta/models", "native", "GET"),
        ("/v1beta/models/same-native", "native", "GET"),
        ("/v1/models", "chat", "GET"),
        ("/v1/models/same-chat", "chat", "GET"),
        ("/api/models", "chat", "GET"),
    ] {
        for method in [
            "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW",
        ] {
            if method == allowed {
                continue;
            }
            let response = send_request(&watched.gateway, method, path).await;
            assert_eq!(response.status, 405, "{method} {path}");
            assert_eq!(response.header("allow"), allowed, "{method} {path}");
            match method {
                "HEAD" => assert!(response.body.is_empty(), "{path}"),
                _ => {
                    assert!(response.error(format).contains(allowed), "{path}");
                    // No field is at error.
                    let param = &response.json()["error"]["param"];
                    assert!(param.is_null(), "{method} {path}: {param}");
                }
            }
        }
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn native_streams_are_sse_or_an_array() {
    let watched = GatewayWithLog::start();
    let path = "/v1beta/models/same-native:";
    for (call, wanted) in [
        ("streamGenerateContent?alt=sse", 200),
        ("streamGenerateContent?alt=json", 200),
        ("streamGenerateContent", 200),
        ("streamGenerateContent?alt=proto", 400),
        ("streamGenerateContent?alt=SSE", 400),
        ("streamGenerateContent?alt=", 400),
        ("generateContent?alt=json", 200),
        ("generateContent?alt=sse", 400),
        ("countTokens?alt=json", 200),
    ] {
        let (_, body) = request("native", "", "hello", false);
        let asked = client().post(watched.gateway.url(&format!("{path}{call}")));
        let response = send(asked.bearer_auth(KEY).json(&body)).await;
        assert_eq!(response.status, wanted, "{call}: {}", response.text());
        if wanted == 400 {
            assert!(response.error("native").contains("alt"), "{call}");
        }
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn path_tricks_do_not_bypass_routing() {
    let watched = GatewayWithLog::start();
    for (path, format, wanted) in [
        ("/v1/chat%2Fcompletions", "chat", 404),
        ("/v1/%63hat/completions", "chat", 404),
        ("/v1%2Fmessages", "chat", 404),
        ("/v1beta/models/:generateContent", "native", 400),
        ("/v1beta/models/%00:generateContent", "native", 400),
        ("/v1beta/models/a%0d%0ab:generateContent", "native", 400),
        ("/v1beta/models/%ff:generateContent", "native", 400),
        ("/v1beta/models/%zz:generateContent", "native", 404),
        (
            "/v1beta/models/same-native%3F:generateContent",
            "native",
            404,
        ),
        (
            "/v1beta/models/%2e%2e%2fmock:generateContent",
            "native",
            404,
        ),
        (
            "/v1beta/models/same-native:generateContent:generateContent",
            "native",
            404,
        ),
        (
            "/v1beta/models/same-native%253AgenerateContent",
            "native",
            404,
        ),
        (
            "/v1beta/models/models/models/same-native:generateContent",
            "native",
            404,
        ),
    ] {
        let (_, body) = request("native", "", "hello", false);
        let url = watched.gateway.url(path);
        let response = send(client().post(url).bearer_auth(KEY).json(&body)).await;
        // What looks like the name of a model can only be got.
        let got = path.contains("%253A") && response.status == 405;
        assert!(
            got || response.status == wanted,
            "{path}: {}",
            response.text()
        );
        response.error(format);
    }
    watched.assert_well().await;
}

//! Credentials that the gateway fetches for its upstreams, and fetches again.

use std::time::Duration;

use omniglot_test_support::{Gateway, KEY, RecordingServer, Response, client, post, request};
use serde_json::json;

use crate::admin::samples_when;

const TAKEN: &str = "omniglot_config_reloads_total{outcome=\"taken\"}";

const CHAT: &str = r#"{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// An upstream that knows these tokens.
fn upstream(tokens: &'static [&'static str]) -> RecordingServer {
    RecordingServer::start(move |request, _| {
        let sent = request.header("authorization");
        match tokens.iter().any(|token| sent == format!("Bearer {token}")) {
            true => (200, "application/json", CHAT.to_owned()),
            false => {
                let message = format!("{sent} is not a token that is known here");
                let body = json!({"error": {"message": message, "type": "auth"}});
                (401, "application/json", body.to_string())
            }
        }
    })
}

/// A gateway whose upstream has the token that a script prints.
fn gateway(folder: &tempfile::TempDir, upstream: &RecordingServer, script: &str) -> Gateway {
    let path = folder.path().join("token.sh");
    std::fs::write(&path, script).expect("a script");
    let (path, address) = (path.display(), upstream.address);
    Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: up, format: chat, base_url: 'http://{address}', \
         auth: {{command: [/bin/sh, '{path}'], ttl: 1h}}}}]\n\
         models: [{{id: m, upstreams: [{{name: up}}], retries: {{attempts: 1}}}}]\n"
    ))
}

/// Prints `token-1`, `token-2`, … and writes a line for each into `calls`.
fn counting(folder: &tempfile::TempDir) -> String {
    let calls = folder.path().join("calls");
    let calls = calls.display();
    format!("echo x >> {calls}\nsleep 0.2\necho token-$(wc -l < {calls} | tr -d ' ')\n")
}

fn calls(folder: &tempfile::TempDir) -> usize {
    let calls = std::fs::read_to_string(folder.path().join("calls"));
    calls.unwrap_or_default().lines().count()
}

async fn ask(gateway: &Gateway) -> Response {
    let (path, body) = request("chat", "m", "hi", false);
    post(gateway.url(&path), body.to_string()).await
}

#[tokio::test]
async fn a_thousand_first_requests_wait_for_one_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let upstream = upstream(&["token-1"]);
    let gateway = gateway(&folder, &upstream, &counting(&folder));
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let (path, body) = request("chat", "m", "hi", false);
        let call = client().post(gateway.url(&path)).bearer_auth(KEY);
        waiting.spawn(async move {
            let response = call.body(body.to_string()).send().await.expect("an answer");
            response.status().as_u16()
        });
    }
    while let Some(status) = waiting.join_next().await {
        assert_eq!(status.expect("no panic"), 200);
    }
    assert_eq!(calls(&folder), 1);
}

#[tokio::test]
async fn a_refused_token_is_fetched_again_and_the_request_repeated_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let upstream = upstream(&["token-2"]);
    let gateway = gateway(&folder, &upstream, &counting(&folder));
    let response = ask(&gateway).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(calls(&folder), 2);
    let sent: Vec<String> = upstream
        .requests()
        .iter()
        .map(|one| one.header("authorization").to_owned())
        .collect();
    assert_eq!(sent, ["Bearer token-1", "Bearer token-2"]);

    // A reload that leaves the source as it is keeps the token.
    let before = calls(&folder);
    let text = std::fs::read_to_string(gateway.file()).expect("the config");
    gateway.rewrite(&text.replace("attempts: 1", "attempts: 2"));
    gateway.process.signal("HUP");
    samples_when(&gateway, TAKEN, 1.0).await;
    assert_eq!(ask(&gateway).await.status, 200);
    assert_eq!(calls(&folder), before);
}

#[tokio::test]
async fn an_upstream_that_refuses_every_token_is_asked_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let upstream = upstream(&[]);
    let gateway = gateway(&folder, &upstream, &counting(&folder));
    let response = ask(&gateway).await;
    assert_eq!(response.status, 502, "{}", response.text());
    assert_eq!(upstream.requests().len(), 2);
    assert_eq!(calls(&folder), 2);
    // The next refusal comes too soon for another token.
    assert_eq!(ask(&gateway).await.status, 502);
    assert_eq!(upstream.requests().len(), 3);
    assert_eq!(calls(&folder), 2);
    assert!(!response.text().contains("token-"), "{}", response.text());
}

#[tokio::test]
async fn without_a_token_the_next_upstream_is_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = upstream(&["fixed-token"]);
    let first = upstream(&[]);
    let (first_url, good_url) = (first.url(""), good.url(""));
    let script = folder.path().join("token.sh");
    std::fs::write(&script, "exit 3").expect("a script");
    let script = script.display();
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n\
         - {{name: first, format: chat, base_url: '{first_url}', auth: {{command: [/bin/sh, '{script}']}}}}\n\
         - {{name: good, format: chat, base_url: '{good_url}', auth: {{bearer: fixed-token}}}}\n\
         models:\n\
         - {{id: m, upstreams: [{{name: first}}, {{name: good, priority: 1}}]}}\n\
         - {{id: only, upstreams: [{{name: first}}]}}\n"
    ));
    let response = ask(&gateway).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(first.requests().is_empty());
    let (path, body) = request("chat", "only", "hi", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 502);
    assert!(
        response.text().contains("credential for the upstream"),
        "{}",
        response.text()
    );
    let failures = gateway.metric("omniglot_upstream_failures_total").await;
    assert!(
        failures
            .iter()
            .any(|line| line.contains("cause=\"credentials\"")),
        "{failures:?}"
    );
}

#[tokio::test]
async fn a_token_that_ends_soon_is_replaced_without_a_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let upstream = upstream(&["t-1", "t-2", "t-3", "t-4", "t-5", "t-6", "t-7", "t-8"]);
    let calls_file = folder.path().join("calls");
    let file = calls_file.display();
    let script = format!(
        "echo x >> {file}\nprintf '{{\"access_token\":\"t-%s\",\"expires_in\":2}}' $(wc -l < {file} | tr -d ' ')\n"
    );
    let gateway = gateway(&folder, &upstream, &script);
    assert_eq!(ask(&gateway).await.status, 200);
    let until = tokio::time::Instant::now() + Duration::from_secs(20);
    while calls(&folder) < 3 {
        assert!(tokio::time::Instant::now() < until, "no token was replaced");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ask(&gateway).await.status, 200);
}

//! The order in which the hooks of `ProxyHttp` run, whoever calls them.

use std::time::Duration;

use omniglot_test_support::{Gateway, KEY, Mock, Stderr, free_address, new_client, wait_for};
use tokio::net::TcpListener;

/// A model of a good upstream of another format, one whose first upstream is away, and one whose
/// upstream never answers.
fn config(mock: &Mock, silent: std::net::SocketAddr) -> String {
    let (good, away) = (mock.address, free_address());
    format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n\
         - {{name: good, format: messages, base_url: \"http://{good}\"}}\n\
         - {{name: away, format: messages, base_url: \"http://{away}\", breaker: off}}\n\
         - {{name: silent, format: messages, base_url: \"http://{silent}\"}}\n\
         models:\n\
         - {{id: good, upstreams: [{{name: good}}]}}\n\
         - {{id: failover, upstreams: [{{name: away}}], fallbacks: [good]}}\n\
         - {{id: silent, upstreams: [{{name: silent}}]}}\n"
    )
}

/// The hooks of the only request so far, up to `logging`; a hook that runs several times in a row counts once.
async fn hooks(stderr: &Stderr, seen: &mut usize) -> Vec<String> {
    let from = *seen;
    let text = wait_for("the last hook", async || {
        let text = stderr.text();
        let new = text.get(from..).unwrap_or_default().to_owned();
        new.contains(" logging\n").then_some(new)
    })
    .await;
    *seen = from + text.len();
    let lines = text
        .lines()
        .filter(|line| line.contains("omniglot::hooks]"));
    let mut hooks: Vec<String> = lines
        .filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
        .collect();
    hooks.dedup();
    hooks
}

#[tokio::test]
async fn hooks_run_in_the_order_that_the_documentation_names() {
    let mock = Mock::start();
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let silent_at = silent.local_addr().expect("an address");
    let stderr = Stderr::new();
    let gateway = Gateway::start_with(&config(&mock, silent_at), |command| {
        command.env("RUST_LOG", "warn,omniglot::hooks=trace");
        stderr.attach(command);
    });
    let url = gateway.url("/v1/chat/completions");
    let send = async |key: &str, model: &str, stream: bool, limit: Duration| {
        let messages =
            serde_json::json!([{"role": "user", "content": "hello there mock:pace=50ms"}]);
        let body = serde_json::json!({"model": model, "messages": messages, "stream": stream});
        let request = new_client()
            .post(&url)
            .bearer_auth(key)
            .timeout(limit)
            .json(&body);
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        response.bytes().await.ok().map(|_| status)
    };
    let long = Duration::from_secs(60);
    let start = ["new_ctx", "request_filter"];
    let attempt = [
        "upstream_peer",
        "upstream_request_filter",
        "request_body_filter",
    ];
    let mut seen = stderr.text().len();

    assert_eq!(send(KEY, "good", false, long).await, Some(200));
    let response = [
        "upstream_response_filter",
        "response_body_filter",
        "response_filter",
    ];
    let json = [&start[..], &attempt, &response, &["logging"]].concat();
    assert_eq!(hooks(&stderr, &mut seen).await, json, "JSON");

    assert_eq!(send(KEY, "good", true, long).await, Some(200));
    let events = ["response_body_filter", "logging"];
    let stream = [&start[..], &attempt, &response, &events].concat();
    assert_eq!(hooks(&stderr, &mut seen).await, stream, "stream");

    assert_eq!(send(KEY, "failover", false, long).await, Some(200));
    let failed = ["fail_to_connect"];
    let failover = [&start[..], &attempt, &failed, &attempt, &response];
    let failover = [failover.concat(), vec!["logging"]].concat();
    assert_eq!(hooks(&stderr, &mut seen).await, failover, "failover");

    assert_eq!(send("another key", "good", false, long).await, Some(401));
    let refused = [&start[..], &["fail_to_proxy", "logging"]].concat();
    assert_eq!(hooks(&stderr, &mut seen).await, refused, "refused key");

    let gone = async {
        let (_connection, _) = silent.accept().await.expect("the gateway connects");
        hooks(&stderr, &mut seen).await
    };
    let short = Duration::from_millis(500);
    let (status, hooks) = tokio::join!(send(KEY, "silent", false, short), gone);
    let left = ["error_while_proxy", "fail_to_proxy", "logging"];
    assert_eq!(status, None);
    assert_eq!(hooks, [&start[..], &attempt, &left].concat(), "client gone");
}

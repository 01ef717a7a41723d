//! Upstreams that do not know the path they are asked for, as with a wrong base URL.

use omniglot_test_support::{Gateway, Stderr, post, request, wait_for};

use super::{ScriptedUpstream, config, failure, good, outcome, reply, send_request};

const PAGE: &str = "<!doctype html><title>404</title>";

#[tokio::test]
async fn a_page_in_place_of_an_error_is_a_502_that_names_the_path() {
    for (status, body) in [
        (404, PAGE),
        (404, r#"{"detail":"Not Found"}"#),
        (404, ""),
        (405, PAGE),
    ] {
        let lost = ScriptedUpstream::start(vec![reply(status, "", body)]).await;
        let stderr = Stderr::new();
        let gateway = Gateway::start_with(&config(&[&lost], "", ""), |command| {
            stderr.attach(command);
        });
        let response = send_request(&gateway).await;
        assert_eq!(outcome(&response), (502, "1", "u0"), "{status} {body}");
        let message = response.json()["error"]["message"].to_string();
        assert!(message.contains("/v1/chat/completions"), "{message}");
        assert!(message.contains(&status.to_string()), "{message}");
        let base = lost.upstream.base_url();
        let authority = base
            .split("//")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let authority = authority.expect("an address");
        assert!(!message.contains(authority), "{message}");
        let line = wait_for("the line in the log", async || {
            let text = stderr.text();
            let mut lines = text.lines();
            let line = lines.find(|line| line.contains("base_url"));
            line.map(str::to_owned)
        })
        .await;
        let url = format!("http://{authority}/v1/chat/completions");
        assert!(line.contains(&url), "{line}");
        assert!(line.contains("upstream u0"), "{line}");
        assert!(line.contains(response.header("x-request-id")), "{line}");
    }
}

#[tokio::test]
async fn the_next_upstream_is_tried_and_the_breaker_stays_closed() {
    let lost = ScriptedUpstream::start(vec![reply(404, "", PAGE)]).await;
    let found = ScriptedUpstream::start(vec![good()]).await;
    let gateway = Gateway::start(&config(&[&lost, &found], "breaker: {failures: 1}", ""));
    for _ in 0..3 {
        assert_eq!(outcome(&send_request(&gateway).await), (200, "2", "u1"));
    }
    assert_eq!(lost.request_count(), 3);
    let failures = gateway.metric("omniglot_upstream_failures_total").await;
    assert!(
        failures
            .iter()
            .any(|line| line.contains("\"u0\"") && line.ends_with(" 3")),
        "{failures:?}"
    );
}

#[tokio::test]
async fn an_error_of_the_format_stays_a_404() {
    let lost = ScriptedUpstream::start(vec![failure(404)]).await;
    let found = ScriptedUpstream::start(vec![good()]).await;
    let gateway = Gateway::start(&config(&[&lost, &found], "", ""));
    assert_eq!(outcome(&send_request(&gateway).await), (404, "1", "u0"));
    // Also for a client of another format.
    let (path, body) = request("messages", "m", "hello", false);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 404);
}

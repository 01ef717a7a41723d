//! Retries: which failures are retried, at which upstream, how often, and after which delay.

use std::time::{Duration, Instant};

use omniglot_test_support::{
    Gateway, Http1Connection, Mock, http1_post_head, post, request, sse_events,
};

use super::{ScriptedUpstream, config, failure, good, outcome, reply, send_request};
use crate::bodies::CHAT;

#[tokio::test]
async fn the_same_upstream_is_retried_as_often_as_allowed() {
    let late = ScriptedUpstream::start(vec![failure(503), failure(500), good()]).await;
    let gateway = Gateway::start(&config(
        &[&late],
        "",
        "retries: {attempts: 3, backoff: 1ms}",
    ));
    assert_eq!(outcome(&send_request(&gateway).await), (200, "3", "u0"));

    let never = ScriptedUpstream::start(vec![failure(503)]).await;
    let gateway = Gateway::start(&config(
        &[&never],
        "",
        "retries: {attempts: 3, backoff: 1ms}",
    ));
    assert_eq!(outcome(&send_request(&gateway).await), (503, "3", "u0"));
    assert_eq!(never.request_count(), 3);
}

#[tokio::test]
async fn without_the_setting_every_upstream_is_tried_once() {
    let (one, two) = (
        ScriptedUpstream::start(vec![failure(503)]).await,
        ScriptedUpstream::start(vec![failure(502)]).await,
    );
    let gateway = Gateway::start(&config(&[&one, &two], "", ""));
    assert_eq!(outcome(&send_request(&gateway).await), (502, "2", "u1"));
    assert_eq!((one.request_count(), two.request_count()), (1, 1));
}

#[tokio::test]
async fn client_errors_are_not_retried() {
    for status in [400, 404, 413, 422] {
        let first = ScriptedUpstream::start(vec![failure(status)]).await;
        let second = ScriptedUpstream::start(vec![good()]).await;
        let model = "retries: {attempts: 4, backoff: 1ms}";
        let gateway = Gateway::start(&config(&[&first, &second], "", model));
        assert_eq!(outcome(&send_request(&gateway).await), (status, "1", "u0"));
        assert_eq!(second.request_count(), 0);
    }
}

#[tokio::test]
async fn an_exhausted_quota_is_retried_at_another_upstream_only() {
    let body = r#"{"error":{"message":"you are out","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
    let model = "retries: {attempts: 4, backoff: 1ms}";
    let alone = ScriptedUpstream::start(vec![reply(429, "", body)]).await;
    let gateway = Gateway::start(&config(&[&alone], "", model));
    let response = send_request(&gateway).await;
    assert_eq!(outcome(&response), (429, "1", "u0"));
    assert!(
        response.text().contains("insufficient_quota"),
        "{}",
        response.text()
    );

    let empty = ScriptedUpstream::start(vec![reply(429, "", body)]).await;
    let other = ScriptedUpstream::start(vec![failure(500), good()]).await;
    let gateway = Gateway::start(&config(&[&empty, &other], "", model));
    assert_eq!(outcome(&send_request(&gateway).await), (200, "3", "u1"));
    assert_eq!((empty.request_count(), other.request_count()), (1, 2));
}

#[tokio::test]
async fn refused_credentials_are_not_retried() {
    let alone = ScriptedUpstream::start(vec![failure(401)]).await;
    let model = "retries: {attempts: 4, backoff: 1ms}";
    let gateway = Gateway::start(&config(&[&alone], "", model));
    assert_eq!(outcome(&send_request(&gateway).await), (502, "1", "u0"));
}

#[tokio::test]
async fn retry_after_of_an_upstream_is_respected() {
    let busy = reply(
        429,
        "retry-after: 1\r\n",
        r#"{"error":{"message":"busy","type":"rate_limit_error","param":null,"code":null}}"#,
    );
    let polite = ScriptedUpstream::start(vec![busy, good()]).await;
    let model = "retries: {attempts: 2, backoff: 1ms}";
    let gateway = Gateway::start(&config(&[&polite], "", model));
    let since = Instant::now();
    assert_eq!(outcome(&send_request(&gateway).await), (200, "2", "u0"));
    assert!(
        since.elapsed() >= Duration::from_millis(990),
        "{:?}",
        since.elapsed()
    );
}

#[tokio::test]
async fn a_long_retry_after_is_passed_to_the_client() {
    let busy = reply(
        429,
        "retry-after: 3600\r\n",
        r#"{"error":{"message":"busy","type":"rate_limit_error","param":null,"code":null}}"#,
    );
    let polite = ScriptedUpstream::start(vec![busy]).await;
    let gateway = Gateway::start(&config(&[&polite], "", "retries: {attempts: 5}"));
    let response = send_request(&gateway).await;
    assert_eq!(outcome(&response), (429, "1", "u0"));
    assert_eq!(response.header("retry-after"), "3600");
}

#[tokio::test]
async fn an_attempt_and_all_attempts_have_timeouts() {
    let silent = ScriptedUpstream::start(vec![String::new()]).await;
    let second = ScriptedUpstream::start(vec![good()]).await;
    let model = "retries: {per_attempt_timeout: 200ms}";
    let gateway = Gateway::start(&config(&[&silent, &second], "", model));
    assert_eq!(outcome(&send_request(&gateway).await), (200, "2", "u1"));

    let model = "retries: {attempts: 20, per_attempt_timeout: 200ms, total_timeout: 500ms}";
    let gateway = Gateway::start(&config(&[&silent], "", model));
    let response = send_request(&gateway).await;
    assert_eq!(response.status, 504, "{}", response.text());
    let attempts: u32 = response
        .header("x-omniglot-attempts")
        .parse()
        .expect("a number");
    assert!((1..=3).contains(&attempts), "{attempts}");
}

#[tokio::test]
async fn a_stream_that_began_in_time_may_exceed_the_timeouts() {
    let mock = Mock::start();
    let text = omniglot_test_support::single_upstream_config(
        "",
        &format!("base_url: \"http://{}/v1\"", mock.address),
    );
    let text = text.replace(
        "upstreams: [{name: up}]}",
        "upstreams: [{name: up}], retries: {per_attempt_timeout: 1s, total_timeout: 1s}}",
    );
    let gateway = Gateway::start(&text);
    let (_, body) = request("chat", "m", "mock:events=15 mock:pace=100ms", true);
    let response = post(gateway.url(CHAT), body.to_string()).await;
    assert_eq!(response.status, 200);
    assert!(
        response.text().ends_with("data: [DONE]\n\n"),
        "{}",
        response.text()
    );
}

#[tokio::test]
async fn a_stream_beyond_the_total_timeout_ends_with_an_error() {
    let mock = Mock::start();
    let text = omniglot_test_support::single_upstream_config(
        "",
        &format!(
            "base_url: \"http://{}/v1\", timeouts: {{total: 3s}}",
            mock.address
        ),
    );
    let gateway = Gateway::start(&text);
    let (_, body) = request(
        "chat",
        "m",
        "mock:events=10 mock:wait=never-signalled",
        true,
    );
    mock.signal("never-signalled", 3).await;
    let response = post(gateway.url(CHAT), body.to_string()).await;
    assert_eq!(response.status, 200);
    let events = sse_events(response.text());
    let last = events.last().expect("events");
    assert!(last.1.contains("\"error\""), "{events:?}");
    assert!(!response.text().contains("[DONE]"));
    gateway.until_idle().await;
}

#[tokio::test]
async fn a_model_may_have_longer_timeouts_than_its_upstream() {
    let slow = ScriptedUpstream::start(vec![String::new()]).await;
    let model = "timeouts: {first_byte: 100ms}";
    let gateway = Gateway::start(&config(&[&slow], "timeouts: {first_byte: 1h}", model));
    let response = send_request(&gateway).await;
    assert_eq!(outcome(&response), (504, "1", "u0"));
    assert!(
        response.text().contains("first_byte 100ms"),
        "{}",
        response.text()
    );
}

#[tokio::test]
async fn a_body_sent_too_slowly_times_out() {
    let unasked = ScriptedUpstream::start(vec![good()]).await;
    let text = config(&[&unasked], "", "").replace(
        "admin: ADMIN",
        "admin: ADMIN, timeouts: {body: 500ms, body_idle: 1h}",
    );
    let gateway = Gateway::start(&text);
    let mut connection = Http1Connection::connect(gateway.address).await;
    connection
        .send(http1_post_head(CHAT, "content-length: 1000\r\n"))
        .await;
    connection.send("{").await;
    // The first byte has been read and a second one is there, but the whole never comes.
    connection.send(" ").await;
    let response = connection.read_message().await.expect("an answer");
    assert_eq!(response.status(), 408, "{}", response.text());
    assert_eq!(unasked.request_count(), 0);
}

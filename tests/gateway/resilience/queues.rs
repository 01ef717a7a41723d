//! The concurrency limit of an upstream, its queue, and the upstream that a conversation stays at.

use omniglot_test_support::{
    Gateway, KEY, Mock, client, post, request, send, single_upstream_config, wait_until,
};

use super::{ScriptedUpstream, config, good, outcome};
use crate::bodies::CHAT;

fn start_with_queue(mock: &Mock, room: &str) -> Gateway {
    let base = format!("base_url: \"http://{}/v1\"", mock.address);
    Gateway::start(&single_upstream_config("", &format!("{base}, {room}")))
}

fn waiting_prompt(name: &str) -> String {
    let (_, body) = request(
        "chat",
        "m",
        &format!("mock:name={name} mock:wait={name} hello"),
        true,
    );
    body.to_string()
}

async fn until_waiting(gateway: &Gateway, count: usize) {
    let line = format!("omniglot_upstream_requests_waiting{{upstream=\"up\"}} {count}");
    wait_until("so many wait", async || {
        gateway.metric("omniglot_upstream_requests_waiting").await == [&*line]
    })
    .await;
}

#[tokio::test]
async fn a_queued_request_is_served_later_and_one_beyond_the_queue_is_refused() {
    let mock = Mock::start();
    let gateway = start_with_queue(&mock, "max_in_flight: 1, queue: 1, queue_timeout: 1h");
    let url = gateway.url(CHAT);
    let first = tokio::spawn(post(url.clone(), waiting_prompt("first")));
    mock.until_seen("first", "waiting", 1).await;
    let second = tokio::spawn(post(url.clone(), waiting_prompt("second")));
    until_waiting(&gateway, 1).await;
    let third = post(url, waiting_prompt("third")).await;
    assert_eq!(outcome(&third), (503, "1", "up"), "{}", third.text());
    assert_eq!(third.header("retry-after"), "1");
    assert!(third.error("chat").contains("no more may wait"));
    assert_eq!(mock.seen("second", "started").await, 0);

    mock.signal("first", 1000).await;
    assert_eq!(first.await.expect("no panic").status, 200);
    mock.until_seen("second", "waiting", 1).await;
    mock.signal("second", 1000).await;
    assert_eq!(second.await.expect("no panic").status, 200);
    gateway.until_idle().await;
    let left = gateway.metric("omniglot_upstream_requests_in_flight").await;
    assert_eq!(
        left,
        [r#"omniglot_upstream_requests_in_flight{upstream="up"} 0"#]
    );
}

#[tokio::test]
async fn a_request_queued_too_long_is_refused() {
    let mock = Mock::start();
    let gateway = start_with_queue(&mock, "max_in_flight: 1, queue: 1, queue_timeout: 200ms");
    let url = gateway.url(CHAT);
    let first = tokio::spawn(post(url.clone(), waiting_prompt("first")));
    mock.until_seen("first", "waiting", 1).await;
    for name in ["late", "later"] {
        let late = post(url.clone(), waiting_prompt(name)).await;
        assert_eq!(late.status, 503);
        assert!(late.error("chat").contains("the wait was too long"));
        assert_eq!(mock.seen(name, "started").await, 0);
    }
    mock.signal("first", 1000).await;
    assert_eq!(first.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_the_queue() {
    let mock = Mock::start();
    let gateway = start_with_queue(&mock, "max_in_flight: 1, queue: 1, queue_timeout: 1h");
    let url = gateway.url(CHAT);
    let first = tokio::spawn(post(url.clone(), waiting_prompt("first")));
    mock.until_seen("first", "waiting", 1).await;
    let waiting = tokio::spawn(post(url.clone(), waiting_prompt("gone")));
    until_waiting(&gateway, 1).await;
    waiting.abort();
    until_waiting(&gateway, 0).await;
    first.abort();
    gateway.until_idle().await;
    assert_eq!(mock.seen("gone", "started").await, 0);
    let (_, body) = request("chat", "m", "hello", false);
    assert_eq!(post(url, body.to_string()).await.status, 200);
}

#[tokio::test]
async fn a_full_upstream_is_skipped_for_one_with_capacity() {
    let mock = Mock::start();
    let spare = ScriptedUpstream::start(vec![good()]).await;
    let text = config(&[&spare], "", "").replace(
        "upstreams:\n",
        &format!(
            "upstreams:\n  - {{name: full, format: chat, base_url: \"http://{}/v1\", max_in_flight: 1, queue: 0}}\n",
            mock.address
        ),
    );
    let text = text.replace(
        "[{name: u0, priority: 0}]",
        "[{name: full}, {name: u0, priority: 1}]",
    );
    let gateway = Gateway::start(&text);
    let first = tokio::spawn(post(gateway.url(CHAT), waiting_prompt("first")));
    mock.until_seen("first", "waiting", 1).await;
    let (_, body) = request("chat", "m", "hello", false);
    let second = post(gateway.url(CHAT), body.to_string()).await;
    assert_eq!(outcome(&second), (200, "2", "u0"));
    mock.signal("first", 1000).await;
    assert_eq!(first.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn a_conversation_stays_at_its_upstream() {
    let upstreams = [
        ScriptedUpstream::start(vec![good()]).await,
        ScriptedUpstream::start(vec![good()]).await,
        ScriptedUpstream::start(vec![good()]).await,
    ];
    let all: Vec<&ScriptedUpstream> = upstreams.iter().collect();
    let text = config(&all, "", "balance: {header: x-session-id}");
    // Without priorities: the header alone decides.
    let text = (0..3).fold(text, |text, number| {
        text.replace(&format!(", priority: {number}"), "")
    });
    let gateway = Gateway::start(&text);
    let mut used = std::collections::BTreeSet::new();
    for session in 0..12 {
        let mut upstreams = std::collections::BTreeSet::new();
        for _ in 0..4 {
            let (_, body) = request("chat", "m", "hello", false);
            let call = client().post(gateway.url(CHAT)).bearer_auth(KEY);
            let call = call.header("x-session-id", format!("session-{session}"));
            let response = send(call.json(&body)).await;
            upstreams.insert(response.header("x-omniglot-upstream").to_owned());
        }
        assert_eq!(upstreams.len(), 1, "{upstreams:?}");
        used.extend(upstreams);
    }
    assert!(used.len() > 1, "every session at {used:?}");
}

#[tokio::test]
async fn the_attempt_timeout_includes_the_time_in_the_queue() {
    let mock = Mock::start();
    let base = format!("base_url: \"http://{}/v1\"", mock.address);
    let room = "max_in_flight: 1, queue: 1, queue_timeout: 1h";
    let text = single_upstream_config("", &format!("{base}, {room}"));
    let text = text.replace(
        "upstreams: [{name: up}]}",
        "upstreams: [{name: up}], retries: {per_attempt_timeout: 200ms}}, \
         {id: patient, upstreams: [{name: up}]}",
    );
    let gateway = Gateway::start(&text);
    let body = waiting_prompt("first").replace(r#""model":"m""#, r#""model":"patient""#);
    let first = tokio::spawn(post(gateway.url(CHAT), body));
    mock.until_seen("first", "waiting", 1).await;
    let late = post(gateway.url(CHAT), waiting_prompt("late")).await;
    assert_eq!(outcome(&late), (503, "1", "up"), "{}", late.text());
    mock.signal("first", 1000).await;
    assert_eq!(first.await.expect("no panic").status, 200);
}

//! Circuit breakers skip upstreams that keep failing, and find out when they work again.

use omniglot_test_support::{Gateway, wait_until};

use super::{ScriptedUpstream, config, failure, good, outcome, reply, send_request};

const OPEN_LONG: &str = "breaker: {failures: 2, open_for: 1h}";

#[tokio::test]
async fn after_consecutive_failures_the_next_upstream_is_tried_first() {
    let bad = ScriptedUpstream::start(vec![failure(500)]).await;
    let spare = ScriptedUpstream::start(vec![good()]).await;
    let gateway = Gateway::start(&config(&[&bad, &spare], OPEN_LONG, ""));
    for _ in 0..2 {
        assert_eq!(outcome(&send_request(&gateway).await), (200, "2", "u1"));
    }
    for _ in 0..3 {
        assert_eq!(outcome(&send_request(&gateway).await), (200, "1", "u1"));
    }
    assert_eq!(bad.request_count(), 2);
    let open = gateway.metric("omniglot_upstream_breaker_open").await;
    assert!(
        open.contains(&r#"omniglot_upstream_breaker_open{upstream="u0",model="m"} 1"#.to_owned()),
        "{open:?}"
    );
    assert!(
        open.contains(&r#"omniglot_upstream_breaker_open{upstream="u1",model="m"} 0"#.to_owned()),
        "{open:?}"
    );
}

#[tokio::test]
async fn a_probe_finds_an_upstream_that_works_again() {
    let healing = ScriptedUpstream::start(vec![failure(500), failure(500), good()]).await;
    let spare = ScriptedUpstream::start(vec![good()]).await;
    let breaker = "breaker: {failures: 2, open_for: 200ms}";
    let gateway = Gateway::start(&config(&[&healing, &spare], breaker, ""));
    for _ in 0..2 {
        assert_eq!(outcome(&send_request(&gateway).await), (200, "2", "u1"));
    }
    wait_until("the first upstream answers again", async || {
        outcome(&send_request(&gateway).await) == (200, "1", "u0")
    })
    .await;
    // What a reply has shown is noted when all of it has gone out.
    wait_until("the breaker is closed", async || {
        let name = "omniglot_upstream_breaker_open{upstream=\"u0\"";
        let closed = r#"omniglot_upstream_breaker_open{upstream="u0",model="m"} 0"#;
        gateway.metric(name).await == [closed]
    })
    .await;
}

#[tokio::test]
async fn the_only_upstream_is_used_with_an_open_breaker() {
    let bad = ScriptedUpstream::start(vec![failure(500), failure(500), failure(500), good()]).await;
    let gateway = Gateway::start(&config(&[&bad], OPEN_LONG, ""));
    for _ in 0..3 {
        assert_eq!(outcome(&send_request(&gateway).await), (500, "1", "u0"));
    }
    assert_eq!(outcome(&send_request(&gateway).await), (200, "1", "u0"));
}

#[tokio::test]
async fn client_errors_do_not_open_the_breaker() {
    let strict = ScriptedUpstream::start(vec![failure(400)]).await;
    let spare = ScriptedUpstream::start(vec![good()]).await;
    let gateway = Gateway::start(&config(&[&strict, &spare], OPEN_LONG, ""));
    for _ in 0..6 {
        assert_eq!(outcome(&send_request(&gateway).await), (400, "1", "u0"));
    }
}

#[tokio::test]
async fn retry_after_of_an_upstream_holds_for_every_request() {
    let busy = reply(
        429,
        "retry-after: 300\r\n",
        r#"{"error":{"message":"busy","type":"rate_limit_error","param":null,"code":null}}"#,
    );
    let polite = ScriptedUpstream::start(vec![busy]).await;
    let spare = ScriptedUpstream::start(vec![good()]).await;
    let gateway = Gateway::start(&config(&[&polite, &spare], "", ""));
    assert_eq!(outcome(&send_request(&gateway).await), (200, "2", "u1"));
    for _ in 0..3 {
        assert_eq!(outcome(&send_request(&gateway).await), (200, "1", "u1"));
    }
    assert_eq!(polite.request_count(), 1);
}

#[tokio::test]
async fn with_the_breaker_off_every_request_tries_the_upstream() {
    let bad = ScriptedUpstream::start(vec![failure(500)]).await;
    let spare = ScriptedUpstream::start(vec![good()]).await;
    let gateway = Gateway::start(&config(&[&bad, &spare], "breaker: off", ""));
    for _ in 0..8 {
        assert_eq!(outcome(&send_request(&gateway).await), (200, "2", "u1"));
    }
}

#[tokio::test]
async fn the_metrics_show_which_upstream_is_down() {
    // Health checks and requests are answered in turn here, so each has its own upstream.
    let ill = ScriptedUpstream::start(vec![failure(500)]).await;
    let spare = ScriptedUpstream::start(vec![good()]).await;
    let text = config(&[&ill, &spare], "", "").replace(
        "name: u0, format: chat,",
        "name: u0, format: chat, health: {path: /alive, interval: 2s, timeout: 2s},",
    );
    let gateway = Gateway::start(&text);
    wait_until("the check has failed", async || {
        gateway.metric("omniglot_upstream_down").await
            == [r#"omniglot_upstream_down{upstream="u0"} 1"#]
    })
    .await;
    assert_eq!(outcome(&send_request(&gateway).await), (200, "1", "u1"));

    let well = ScriptedUpstream::start(vec![good()]).await;
    let healed = text.replace(&ill.upstream.base_url(), &well.upstream.base_url());
    gateway.rewrite(&healed);
    gateway.process.signal("HUP");
    wait_until("the check succeeds", async || {
        gateway.metric("omniglot_upstream_down").await
            == [r#"omniglot_upstream_down{upstream="u0"} 0"#]
    })
    .await;
    assert_eq!(outcome(&send_request(&gateway).await), (200, "1", "u0"));
}

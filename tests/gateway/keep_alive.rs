//! Streams whose upstream is silent send keep-alives in the way of the client's format.

use std::time::Duration;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, TIMEOUT, every_format_config, new_client, post, request,
    sse_events,
};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::bodies::http2;

/// What a client of a format gets while nothing is said; empty: it would understand nothing.
fn keep_alive_event(format: &str) -> &'static str {
    match format {
        "messages" => "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "native" => "",
        _ => ": ping\n\n",
    }
}

fn config(mock: &Mock, keep_alive: &str, upstream: &str) -> String {
    let server = format!("server: {{timeouts: {{keep_alive: {keep_alive}}}, ");
    every_format_config(mock.address)
        .replace("server: {", &server)
        .replace("auth:", &format!("{upstream}auth:"))
}

/// Reads a stream until it holds some signs of life, lets it go on, and reads it to its end.
async fn wait_for_keep_alives(
    client: &reqwest::Client,
    gateway: &Gateway,
    mock: &Mock,
    (client_format, upstream): (&str, &str),
) -> String {
    let name = format!(
        "{client_format}-{upstream}-{}",
        uuid::Uuid::now_v7().simple()
    );
    if client_format == "native" && upstream != "native" {
        // Before there is content, nothing is said to such a client at all.
        mock.signal(&name, 5).await;
    }
    let prompt = format!("mock:events=4 mock:wait={name}");
    let (path, body) = request(client_format, &format!("same-{upstream}"), &prompt, true);
    let call = client.post(gateway.url(&path)).bearer_auth(KEY);
    let mut response = call.json(&body).send().await.expect("a header");
    assert_eq!(response.status(), 200, "{name}");
    let sign = keep_alive_event(client_format);
    let mut text = String::new();
    let mut signalled = false;
    loop {
        let enough = match sign {
            "" => !text.is_empty(),
            sign => text.matches(sign).count() >= 2,
        };
        if enough && !signalled {
            if sign.is_empty() {
                // Time for what should not come.
                sleep(Duration::from_millis(200)).await;
            }
            mock.signal(&name, 20).await;
            signalled = true;
        }
        let chunk = timeout(TIMEOUT, response.chunk()).await.expect("no hang");
        match chunk.expect("the stream is not cut") {
            Some(chunk) => text += std::str::from_utf8(&chunk).expect("text"),
            None => return text,
        }
    }
}

#[tokio::test]
async fn a_silent_stream_sends_keep_alives_between_events() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock, "30ms", ""));
    for (format, _) in FORMATS {
        for (upstream, _) in FORMATS {
            // Over HTTP/2 where nothing is translated, over HTTP/1.1 elsewhere.
            let client = match format == upstream {
                true => http2(),
                false => new_client(),
            };
            let text = wait_for_keep_alives(&client, &gateway, &mock, (format, upstream)).await;
            let rest = match keep_alive_event(format) {
                "" => text.clone(),
                sign => text.replace(sign, ""),
            };
            // What is left is the stream as it would have been.
            let all = sse_events(&rest);
            assert!(!rest.contains("ping"), "{format} {upstream}: {text}");
            let first = match format {
                "messages" => "message_start",
                "responses" => "response.created",
                _ => "",
            };
            assert_eq!(all[0].0, first, "{format} {upstream}: {text}");
            assert!(text.starts_with(rest.split("\n\n").next().expect("an event")));
            for (_, data) in &all {
                let whole = data == "[DONE]" || serde_json::from_str::<Value>(data).is_ok();
                assert!(whole, "{format} {upstream}: {data:?} in {text}");
            }
            let (path, body) = request(format, &format!("same-{upstream}"), "mock:events=4", true);
            let swift = post(gateway.url(&path), body.to_string()).await;
            assert_eq!(
                all.len(),
                sse_events(swift.text()).len(),
                "{format} {upstream}"
            );
        }
    }
    gateway.until_idle().await;
}

#[tokio::test]
async fn keep_alives_do_not_hide_a_dead_upstream() {
    let mock = Mock::start();
    let upstream = "timeouts: {idle: 2s}, ";
    let gateway = Gateway::start(&config(&mock, "30ms", upstream));
    for (format, upstream) in [
        ("chat", "chat"),
        ("messages", "messages"),
        ("messages", "native"),
        ("responses", "chat"),
    ] {
        // Once there is content, another upstream would be too late.
        let name = format!("dead-{format}-{upstream}");
        mock.signal(&name, 5).await;
        let prompt = format!("mock:events=9 mock:wait={name}");
        let (path, body) = request(format, &format!("same-{upstream}"), &prompt, true);
        let response = post(gateway.url(&path), body.to_string()).await;
        let text = response.text();
        assert!(
            text.contains(keep_alive_event(format)),
            "{format} {upstream}: {text}"
        );
        let message = sse_events(text);
        let message = message.iter().rev().take(2).any(|(_, data)| {
            let data: Value = serde_json::from_str(data).unwrap_or_default();
            data.to_string().contains("silent for too long")
        });
        assert!(message, "{format} {upstream}: {text}");
    }
}

#[tokio::test]
async fn keep_alives_can_be_turned_off() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock, "off", ""));
    let prompt = "mock:events=3 mock:pace=150ms";
    let (path, body) = request("chat", "same-chat", prompt, true);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert!(!response.text().contains("ping"), "{}", response.text());
}

//! Streams in flight: each event at once, cancelled when the client disconnects, within bounded memory.

use std::time::Duration;

use omniglot_test_support::{
    FORMATS, Gateway, Http1Connection, KEY, Mock, TIMEOUT, every_format_config, http1_post,
    new_client, request, single_upstream_config, wait_until,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::bodies::{CHAT, MIB, http2, send, start_gateway};

/// A request for a stream that the gateway passes on byte by byte: usage is asked for already.
fn streamed(format: &str, prompt: &str) -> (String, Value) {
    let (path, mut body) = request(format, &format!("same-{format}"), prompt, true);
    if format == "chat" {
        body["stream_options"] = json!({"include_usage": true});
    }
    (path, body)
}

/// A stream that is read event by event.
struct Events {
    reply: reqwest::Response,
    unread: Vec<u8>,
}

impl Events {
    /// Asks for a stream in a format; returns once the header is there.
    async fn of(client: &reqwest::Client, gateway: &Gateway, format: &str, prompt: &str) -> Events {
        let (path, body) = streamed(format, prompt);
        let call = client.post(gateway.url(&path)).bearer_auth(KEY);
        let reply = call.json(&body).send().await.expect("a header");
        assert_eq!(reply.status(), 200, "{format}");
        let unread = Vec::new();
        Events { reply, unread }
    }

    /// The next event, raw; `None`: the stream has ended.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(at) = omniglot_test_support::find_bytes(&self.unread, b"\n\n") {
                let event: Vec<u8> = self.unread.drain(..at + 2).collect();
                return Some(String::from_utf8(event).expect("text"));
            }
            let chunk = timeout(TIMEOUT, self.reply.chunk()).await.expect("no hang");
            match chunk.expect("the stream is not cut") {
                Some(chunk) => self.unread.extend_from_slice(&chunk),
                None => return None,
            }
        }
    }
}

/// What the mock itself streams for a prompt.
async fn events_without_gateway(mock: &Mock, format: &str, prompt: &str) -> Vec<String> {
    let (path, body) = streamed(format, prompt);
    let response = new_client().post(mock.url(&path)).json(&body).send().await;
    let text = response.expect("an answer").text().await.expect("a body");
    text.split_inclusive("\n\n").map(str::to_owned).collect()
}

#[tokio::test]
async fn each_event_arrives_before_the_next_one_is_sent() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        let count = events_without_gateway(&mock, format, "mock:events=5")
            .await
            .len();
        for (protocol, client) in [("h1", new_client()), ("h2", http2())] {
            let name = format!("{format}-{protocol}");
            let prompt = format!("mock:events=5 mock:wait={name}");
            let mut events = Events::of(&client, &gateway, format, &prompt).await;
            // What has not been released cannot come, and what has must come by itself.
            for came in 1..count {
                assert!(events.next().await.is_some(), "{name}: {came} of {count}");
                mock.signal(&name, 1).await;
            }
            assert!(events.next().await.is_some(), "{name}");
            assert_eq!(events.next().await, None, "{name}");
        }
    }
    gateway.until_idle().await;
}

/// The first event holds no content: its header is held for a while, but not until content comes.
#[tokio::test]
async fn the_header_arrives_before_any_content() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for format in ["chat", "messages", "responses"] {
        let prompt = format!("mock:events=5 mock:wait=silent-{format} mock:name={format}");
        let mut events = Events::of(&new_client(), &gateway, format, &prompt).await;
        assert!(events.next().await.is_some(), "{format}");
        assert_eq!(mock.seen(format, "waiting").await, 1, "{format}");
    }
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_stream_cancels_the_upstream() {
    let mock = Mock::start();
    for protocol in ["http1", "http2"] {
        let config = every_format_config(mock.address)
            .replace("auth:", &format!("protocol: {protocol}, auth:"));
        let gateway = Gateway::start(&config);
        for (format, _) in FORMATS {
            for (version, client) in [("h1", new_client()), ("h2", http2())] {
                let name = format!("left-{protocol}-{format}-{version}");
                let prompt = format!("mock:events=50 mock:wait={name} mock:name={name}");
                for _ in 0..8 {
                    mock.signal(&name, 1).await;
                }
                let mut events = Events::of(&client, &gateway, format, &prompt).await;
                assert!(events.next().await.is_some());
                drop(events);
                wait_until("the upstream's request is cancelled", async || {
                    mock.seen(&name, "cancelled").await == 1
                })
                .await;
            }
        }
        gateway.until_idle().await;
    }
}

#[tokio::test]
async fn a_client_that_disconnects_before_the_first_byte_cancels_the_upstream() {
    let mock = Mock::start();
    for protocol in ["http1", "http2"] {
        let upstream = format!(
            "base_url: \"http://{}/v1\", protocol: {protocol}",
            mock.address
        );
        let gateway = Gateway::start(&single_upstream_config("", &upstream));
        for (version, client) in [("h1", new_client()), ("h2", http2())] {
            for (number, hold) in ["wait=never", "slow=10m"].into_iter().enumerate() {
                let name = format!("early-{protocol}-{version}-{number}");
                let prompt = format!("mock:{hold} mock:name={name}");
                let sent = request("chat", "m", &prompt, number == 1).1.to_string();
                let (url, client) = (gateway.url(CHAT), client.clone());
                let call = tokio::spawn(async move { send(&client, url, sent.into()).await });
                wait_until("the request is there", async || {
                    mock.seen(&name, "started").await == 1
                })
                .await;
                call.abort();
                wait_until("the upstream's request is cancelled", async || {
                    mock.seen(&name, "cancelled").await == 1
                })
                .await;
            }
        }
        gateway.until_idle().await;
        let lines = gateway.metric("omniglot_upstream_failures_total{").await;
        assert!(
            lines.is_empty(),
            "it was not the upstream's fault: {lines:?}"
        );
    }
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_response_is_not_an_upstream_failure() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let mut body = request("chat", "m", "mock:long=1000000", false).1;
    body["n"] = json!(4);
    let mut connection = Http1Connection::connect(gateway.address).await;
    connection
        .send(http1_post(CHAT, "", &body.to_string()))
        .await;
    assert_eq!(connection.read_head().await.expect("a head").status(), 200);
    drop(connection);
    gateway.until_idle().await;
    let lines = gateway.metric("omniglot_upstream_failures_total{").await;
    assert!(lines.is_empty(), "{lines:?}");
}

#[tokio::test]
async fn a_compressed_response_is_decompressed_for_the_client() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            let mut texts = Vec::new();
            for word in ["mock:name=plain", "mock:gzip"] {
                // The ids are made from the request, so only what was said can be compared.
                let prompt = format!("mock:long=300 {word}");
                let (path, body) = request(format, &format!("same-{format}"), &prompt, stream);
                let call = new_client().post(gateway.url(&path)).bearer_auth(KEY);
                let response = call.json(&body).send().await.expect("an answer");
                assert_eq!(response.status(), 200, "{format}");
                assert!(!response.headers().contains_key("content-encoding"));
                let text = response.text().await.expect("a body");
                texts.push(text.matches("silence").count());
            }
            assert!(texts[0] > 0 && texts[0] == texts[1], "{format}: {texts:?}");
        }
        let name = format!("gzip-{format}");
        let prompt = format!("mock:events=3 mock:gzip mock:wait={name}");
        let mut events = Events::of(&new_client(), &gateway, format, &prompt).await;
        while events.next().await.is_some() {
            mock.signal(&name, 1).await;
        }
    }
}

#[tokio::test]
async fn a_stream_of_ten_thousand_events_arrives_whole() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        let expected = events_without_gateway(&mock, format, "mock:events=10000").await;
        for client in [new_client(), http2()] {
            let mut events = Events::of(&client, &gateway, format, "mock:events=10000").await;
            let mut came = String::new();
            while let Some(chunk) = events.reply.chunk().await.expect("no cut") {
                came += std::str::from_utf8(&chunk).expect("text");
            }
            assert!(expected.len() >= 10_000, "{format}: {}", expected.len());
            assert!(came == expected.concat(), "{format}: {} bytes", came.len());
        }
    }
}

#[tokio::test]
async fn one_event_may_be_megabytes_long() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        let prompt = "mock:long=450000 mock:events=1";
        let expected = events_without_gateway(&mock, format, prompt).await;
        let longest = expected.iter().map(String::len).max();
        assert!(longest > Some(2 * MIB), "{format}: {longest:?}");
        for client in [new_client(), http2()] {
            let events = Events::of(&client, &gateway, format, prompt).await;
            let came = events.reply.text().await.expect("no cut");
            assert!(came == expected.concat(), "{format}: {} bytes", came.len());
        }
    }
}

/// Clients that read nothing, on streams much longer than any buffer on the way.
#[tokio::test]
async fn a_client_that_does_not_read_needs_little_memory() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let mut body = request("chat", "m", "mock:long=1000000 mock:events=1000", true).1;
    body["n"] = json!(4);
    let before = gateway.resident();
    let mut connection = Http1Connection::connect(gateway.address).await;
    connection
        .send(http1_post(CHAT, "connection: close\r\n", &body.to_string()))
        .await;
    assert_eq!(connection.read_head().await.expect("a head").status(), 200);
    let call = http2().post(gateway.url(CHAT)).bearer_auth(KEY).json(&body);
    let response = call.send().await.expect("a header");
    // Nothing can be waited for where nothing happens: time for what should not.
    sleep(Duration::from_secs(2)).await;
    let grown = gateway.resident().saturating_sub(before);
    assert!(
        grown < 12 * 1024,
        "{grown} KiB for two clients that do not read"
    );

    let first = connection.read_to_end().await;
    assert!(first.len() > 16 * MIB, "{} bytes", first.len());
    assert!(first.ends_with(b"data: [DONE]\n\n\r\n0\r\n\r\n"));
    let second = response.bytes().await.expect("no cut");
    assert!(second.len() > 16 * MIB, "{} bytes", second.len());
    assert!(second.ends_with(b"data: [DONE]\n\n"));
    gateway.until_idle().await;
}

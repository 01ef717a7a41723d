//! Request bodies of every size and framing arrive whole at the upstream, or are refused so that the client sees it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{future::join_all, stream};
use omniglot_test_support::{
    FORMATS, Gateway, Http1Connection, KEY, Mock, TIMEOUT, every_format_config, http1_post,
    http1_post_head, new_client, request, single_upstream_config,
};
use reqwest::Body;
use sha2::{Digest as _, Sha256};

pub const MIB: usize = 1 << 20;
/// How a chat stream begins that asks for its usage.
const USAGE_OPTION: &str = r#"{"stream_options":{"include_usage":true},"#;
pub const CHAT: &str = "/v1/chat/completions";

/// A chat request of exactly so many bytes; the mock answers with the SHA-256 of what it got.
pub fn body(size: usize) -> Bytes {
    let head = br#"{"model":"m","messages":[{"role":"user","content":""#;
    let tail =
        br#""},{"role":"assistant","content":"ok"},{"role":"user","content":"mock:sha256"}]}"#;
    let filling = size.checked_sub(head.len() + tail.len());
    let filling = filling.expect("a body has at least its frame");
    let mut bytes = Vec::with_capacity(size);
    bytes.extend_from_slice(head);
    // Never the same twice in a row, so that a piece that is lost or moved changes the digest.
    let mut state = 1_u32;
    bytes.extend((0..filling).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 24) as u8 % 26
    }));
    bytes.extend_from_slice(tail);
    bytes.into()
}

pub fn digest(body: &[u8]) -> String {
    let hex: String = Sha256::digest(body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{hex} bytes {}", body.len())
}

/// Without a length: in chunks, or as HTTP/2 has it anyway.
fn in_pieces(body: &Bytes, size: usize) -> Body {
    let pieces: Vec<_> = (0..body.len())
        .step_by(size)
        .map(|start| Ok::<_, std::io::Error>(body.slice(start..body.len().min(start + size))))
        .collect();
    Body::wrap_stream(stream::iter(pieces))
}

pub fn http2() -> reqwest::Client {
    new_client();
    let builder = reqwest::Client::builder().no_proxy().timeout(TIMEOUT);
    let client = builder.http2_prior_knowledge().build();
    client.expect("a client")
}

pub fn start_gateway(mock: &Mock, server: &str) -> Gateway {
    // A machine that copies hundreds of megabytes may be late to accept a connection.
    let upstream = format!(
        "base_url: \"http://{}/v1\", timeouts: {{connect: 30s}}",
        mock.address
    );
    Gateway::start(&single_upstream_config(server, &upstream))
}

pub async fn send(client: &reqwest::Client, url: String, body: Body) -> (u16, String) {
    let request = client.post(url).bearer_auth(KEY);
    let request = request.header("content-type", "application/json");
    let response = request.body(body).send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.text().await.expect("a body"))
}

#[tokio::test]
async fn large_bodies_arrive_whole_in_every_framing() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    for size in [20 * MIB, 60 * MIB] {
        let body = body(size);
        let expected = digest(&body);
        for (way, client, sent) in [
            ("content-length", new_client(), Body::from(body.clone())),
            ("chunked", new_client(), in_pieces(&body, 100_000)),
            ("HTTP/2 with a length", http2(), Body::from(body.clone())),
            ("HTTP/2", http2(), in_pieces(&body, 100_000)),
        ] {
            let (status, text) = send(&client, gateway.url(CHAT), sent).await;
            assert_eq!(status, 200, "{way}: {text}");
            assert!(text.contains(&expected), "{size} bytes, {way}: {text}");
        }
    }
    gateway.until_idle().await;
    wait_until_freed(&gateway).await;
}

/// What bodies took is given back to the system, though nothing more is asked.
async fn wait_until_freed(gateway: &Gateway) {
    let until = Instant::now() + TIMEOUT;
    while gateway.resident() > 80 * 1024 {
        let resident = gateway.resident();
        assert!(Instant::now() < until, "{resident} KiB are still held");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// So many wait at once that a worker frees what another one asked for.
#[tokio::test]
async fn memory_of_many_large_bodies_is_freed() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let body = body(4 * MIB);
    let client = new_client();
    let sent = (0..64).map(|_| send(&client, gateway.url(CHAT), body.clone().into()));
    for (status, text) in join_all(sent).await {
        assert_eq!(status, 200, "{text}");
    }
    gateway.until_idle().await;
    wait_until_freed(&gateway).await;
}

#[tokio::test]
async fn large_bodies_arrive_whole_when_the_model_is_renamed() {
    let mock = Mock::start();
    for protocol in ["http1", "http2"] {
        let config = every_format_config(mock.address);
        let upstreams = format!("protocol: {protocol}, base_url");
        let gateway = Gateway::start(&config.replace("base_url", &upstreams));
        for (format, _) in FORMATS {
            let (own, theirs) = (format!("other-{format}"), format!("theirs-{format}"));
            let filling = "abcdefghijklm nop".repeat(150_000);
            for stream in [false, true] {
                let prompt = format!("{filling} mock:sha256");
                let (path, sent) = request(format, &own, &prompt, stream);
                let arrives = request(format, &theirs, &prompt, stream).1.to_string();
                let arrives = match (format, stream) {
                    // We ask for its usage.
                    ("chat", true) => arrives.replacen('{', USAGE_OPTION, 1),
                    _ => arrives,
                };
                let (status, text) =
                    send(&new_client(), gateway.url(&path), sent.to_string().into()).await;
                assert_eq!(status, 200, "{protocol}, {format}: {text}");
                let expected = digest(arrives.as_bytes());
                let came = expected.split(' ').all(|word| text.contains(word));
                assert!(came, "{protocol}, {format}, {stream}: {text}");
            }
            let (path, sent) = request(format, &own, "mock:long=100000", false);
            let (_, text) = send(&new_client(), gateway.url(&path), sent.to_string().into()).await;
            let (path, sent) = request(format, &theirs, "mock:long=100000", false);
            let url = format!("http://{}{path}", mock.address);
            let (_, direct) = send(&new_client(), url, sent.to_string().into()).await;
            assert!(direct.len() > 4 * (64 << 10));
            // A native reply tells the model's version, which is the upstream's to say.
            let expected = match format {
                "native" => direct,
                _ => direct.replacen(&theirs, &own, 1),
            };
            assert!(text == expected, "{protocol}, {format}");
        }
    }
}

/// What a client is told whose body is over the limit, in the words of its format.
fn assert_too_large(format: &str, status: u16, text: &str) {
    assert_eq!(status, 413, "{format}: {text}");
    let told: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let (word, expected) = match format {
        "messages" => (&told["error"]["type"], "request_too_large"),
        "native" => (&told["error"]["status"], "INVALID_ARGUMENT"),
        _ => (&told["error"]["type"], "invalid_request_error"),
    };
    assert_eq!(*word, expected, "{format}: {text}");
}

fn path_of(format: &str) -> String {
    omniglot_test_support::request(format, &format!("same-{format}"), "", false).0
}

#[tokio::test]
async fn a_content_length_over_the_limit_is_refused_before_the_body_is_read() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        let mut connection = Http1Connection::connect(gateway.address).await;
        let more = format!("content-length: {}\r\nexpect: 100-continue\r\n", 65 * MIB);
        connection
            .send(http1_post_head(&path_of(format), &more))
            .await;
        let response = connection.read_message().await.expect("a reply");
        assert_too_large(format, response.status(), &response.text());
    }
}

#[tokio::test]
async fn a_client_that_keeps_sending_over_the_limit_gets_the_error() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let body = body(70 * MIB);
    for (format, _) in FORMATS {
        let url = gateway.url(&path_of(format));
        for (client, sent) in [
            (new_client(), Body::from(body.clone())),
            (new_client(), in_pieces(&body, 100_000)),
            (http2(), Body::from(body.clone())),
            (http2(), in_pieces(&body, 100_000)),
        ] {
            let (status, text) = send(&client, url.clone(), sent).await;
            assert_too_large(format, status, &text);
        }
    }
    gateway.until_idle().await;
}

/// Libraries look for an early answer; this client does not look before it has sent everything.
#[tokio::test]
async fn a_client_that_reads_only_after_sending_gets_the_error() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "body_limit: 1MiB");
    let body = body(20 * MIB);
    for more in ["", "connection: close\r\n"] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        let length = format!("{more}content-length: {}\r\n", body.len());
        connection.send(http1_post_head(CHAT, &length)).await;
        connection.send(&body).await;
        let response = connection.read_message().await.expect("a reply");
        assert_too_large("chat", response.status(), &response.text());

        let mut connection = Http1Connection::connect(gateway.address).await;
        connection
            .send(http1_post_head(
                CHAT,
                &format!("{more}transfer-encoding: chunked\r\n"),
            ))
            .await;
        for piece in body.chunks(MIB) {
            connection.send(format!("{:x}\r\n", piece.len())).await;
            connection.send(piece).await;
            connection.send("\r\n").await;
        }
        connection.send("0\r\n\r\n").await;
        let response = connection.read_message().await.expect("a reply");
        assert_too_large("chat", response.status(), &response.text());
    }
    let mut connection = Http1Connection::connect(gateway.address).await;
    let old = http1_post_head(CHAT, &format!("content-length: {}\r\n", body.len()));
    connection.send(old.replace("HTTP/1.1", "HTTP/1.0")).await;
    connection.send(&body).await;
    let response = connection.read_message().await.expect("a reply");
    assert_too_large("chat", response.status(), &response.text());
}

#[tokio::test]
async fn the_error_for_a_wrong_key_reaches_a_client_that_is_sending_a_large_body() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let body = body(20 * MIB);
    for more in ["", "connection: close\r\n"] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        let head = http1_post_head(CHAT, &format!("{more}content-length: {}\r\n", body.len()));
        connection.send(head.replace(KEY, "no-such-key")).await;
        connection.send(&body).await;
        let response = connection.read_message().await.expect("a reply");
        assert_eq!(response.status(), 401, "{}", response.text());
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_passes() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "body_limit: 1000B");
    for (size, expected) in [(1000, 200), (1001, 413), (2000, 413)] {
        let body = body(size);
        for (way, client, sent) in [
            ("content-length", new_client(), Body::from(body.clone())),
            ("one chunk", new_client(), in_pieces(&body, size)),
            ("single bytes", new_client(), in_pieces(&body, 1)),
            ("HTTP/2 with a length", http2(), Body::from(body.clone())),
            ("HTTP/2 in one piece", http2(), in_pieces(&body, size)),
            ("HTTP/2 in single bytes", http2(), in_pieces(&body, 1)),
        ] {
            let (status, text) = send(&client, gateway.url(CHAT), sent).await;
            assert_eq!(status, expected, "{size} bytes, {way}: {text}");
            assert_eq!(status == 200, text.contains(&digest(&body)), "{way}");
        }
    }
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it_and_then_the_response() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let body = body(3 * MIB);
    let mut connection = Http1Connection::connect(gateway.address).await;
    for _ in 0..2 {
        let length = body.len();
        let more = format!("content-length: {length}\r\nexpect: 100-continue\r\n");
        connection.send(http1_post_head(CHAT, &more)).await;
        let go_on = connection.read_head().await.expect("a head");
        assert_eq!(go_on.status(), 100);
        connection.send(&body).await;
        let response = connection.read_message().await.expect("a reply");
        assert_eq!(response.status(), 200, "{}", response.text());
        assert!(response.text().contains(&digest(&body)));
    }
    let expecting = http2().post(gateway.url(CHAT)).bearer_auth(KEY);
    let expecting = expecting
        .header("expect", "100-continue")
        .body(body.clone());
    let response = expecting.send().await.expect("an answer over HTTP/2");
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_body_in_single_bytes_arrives_and_an_empty_one_is_refused() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let body = body(300);
    let mut connection = Http1Connection::connect(gateway.address).await;
    connection
        .stream
        .set_nodelay(true)
        .expect("a socket option");
    let request = http1_post(CHAT, "", std::str::from_utf8(&body).expect("text"));
    for byte in request.as_bytes() {
        connection.send([*byte]).await;
    }
    let response = connection.read_message().await.expect("a reply");
    assert_eq!(response.status(), 200, "{}", response.text());
    assert!(response.text().contains(&digest(&body)));

    let (h1, h2) = (new_client(), http2());
    for client in [&h1, &h2] {
        for sent in [Body::from(""), in_pieces(&Bytes::new(), 1)] {
            let (status, text) = send(client, gateway.url(CHAT), sent).await;
            assert_eq!(status, 400, "{text}");
            assert!(text.contains("invalid_request_error"), "{text}");
        }
    }
    connection
        .send(http1_post_head(CHAT, "transfer-encoding: chunked\r\n"))
        .await;
    connection.send("0\r\n\r\n").await;
    assert_eq!(
        connection.read_message().await.expect("a reply").status(),
        400
    );
}

#[tokio::test]
async fn bodies_that_would_take_too_much_memory_together_wait_outside() {
    let mock = Mock::start();
    let upstream = format!("base_url: \"http://{}/v1\"", mock.address);
    let config = single_upstream_config("body_memory: 1MiB", &upstream);
    let other = "keys: [{name: other, secret: key-of-another-one}, ";
    let gateway = Gateway::start(&config.replace("keys: [", other));
    let large = body(700 << 10);
    let mut first = Http1Connection::connect(gateway.address).await;
    let length = format!(
        "content-length: {}\r\nexpect: 100-continue\r\n",
        large.len()
    );
    first.send(http1_post_head(CHAT, &length)).await;
    let waiting = first.read_head().await.expect("a head");
    assert_eq!(waiting.status(), 100);
    // The first one has all of its memory before any of its bytes.
    for sent in [Body::from(large.clone()), in_pieces(&large, 100_000)] {
        let client = new_client().post(gateway.url(CHAT));
        let client = client.bearer_auth("key-of-another-one");
        let asked = client.header("content-type", "application/json").body(sent);
        let refused = asked.send().await.expect("a reply");
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "1");
        let text = refused.text().await.expect("a body");
        assert!(text.contains("server.body_memory"), "{text}");
    }
    first.send(&large[..]).await;
    let served = first.read_message().await.expect("a reply");
    assert_eq!(served.status(), 200);
    assert!(served.text().contains(&digest(&large)));
    let client = new_client().post(gateway.url(CHAT)).bearer_auth(KEY);
    let asked = client.header("content-type", "application/json");
    let served = asked.body(large).send().await.expect("a reply");
    assert_eq!(served.status(), 200);
}

/// One key announces large bodies and sends nothing of them.
#[tokio::test]
async fn the_bodies_of_one_key_leave_memory_to_others() {
    let mock = Mock::start();
    let upstream = format!("base_url: \"http://{}/v1\"", mock.address);
    let config = single_upstream_config("body_memory: 1MiB", &upstream);
    let greedy = "keys: [{name: greedy, secret: greedy-key-of-another}, ";
    let gateway = Gateway::start(&config.replace("keys: [", greedy));
    let large = body(300 << 10);
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer greedy-key-of-another\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        large.len()
    );
    let mut held = Vec::new();
    for status in [100, 503, 503] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        connection.send(&head).await;
        let answer = connection.read_head().await.expect("a head");
        assert_eq!(answer.status(), status);
        held.push(connection);
    }
    let client = new_client().post(gateway.url(CHAT)).bearer_auth(KEY);
    let asked = client.header("content-type", "application/json");
    let served = asked.body(large).send().await.expect("a reply");
    assert_eq!(served.status(), 200);
}

/// A client asks for a response of 30 MB and does not read it.
#[tokio::test]
async fn long_responses_count_until_they_are_read() {
    let mock = Mock::start();
    let upstream = format!("base_url: \"http://{}/v1\"", mock.address);
    let config = single_upstream_config("body_memory: 48MiB", &upstream);
    let other = "keys: [{name: other, secret: key-of-another-one}, ";
    let gateway = Gateway::start(&config.replace("keys: [", other));
    let long =
        r#"{"model":"m","messages":[{"role":"user","content":"mock:image mock:weight=30000000"}]}"#;
    let ask = || {
        let client = new_client().post(gateway.url(CHAT));
        let client = client.bearer_auth("key-of-another-one");
        let client = client.header("content-type", "application/json");
        client.body(long).send()
    };
    let mut first = Http1Connection::connect(gateway.address).await;
    first.send(http1_post(CHAT, "", long)).await;
    let head = first.read_head().await.expect("a head");
    assert_eq!(head.status(), 200);
    let refused = ask().await.expect("a reply");
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    let text = refused.text().await.expect("a body");
    assert!(text.contains("server.body_memory"), "{text}");
    drop(first);
    for _ in 0..100 {
        let served = ask().await.expect("a reply");
        if served.status() == 200 {
            assert!(served.bytes().await.expect("a body").len() > 30_000_000);
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the memory of the first response was not given back");
}

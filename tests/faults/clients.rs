//! Clients that misbehave: they stop reading, disconnect, nest too deeply, send huge numbers, open many connections.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use omniglot_test_support::{
    FORMATS, Gateway, Http1Connection, KEY, Mock, TIMEOUT, client, client_builder,
    every_format_config, http1_post, post, request, send, wait_until,
};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;

const CHAT: &str = "/v1/chat/completions";

/// More than any number of refused requests may cost, in KiB.
const MEMORY_GROWTH: u64 = 64 << 10;

fn with_server(mock: &Mock, settings: &str) -> Gateway {
    let config = every_format_config(mock.address);
    Gateway::start(&config.replace("server: {", &format!("server: {{{settings}, ")))
}

/// The gateway serves as before.
async fn assert_well(gateway: &Gateway) {
    gateway.until_idle().await;
    let (path, body) = request("chat", "same-messages", "hello", true);
    let response = post(gateway.url(&path), body.to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(
        response.text().ends_with("data: [DONE]\n\n"),
        "{}",
        response.text()
    );
    gateway.until_idle().await;
}

/// A stream much longer than any buffer on the way.
fn long_stream(model: &str, name: &str) -> serde_json::Value {
    let prompt = format!("mock:long=1000000 mock:events=1000 mock:name={name}");
    let mut body = request("chat", model, &prompt, true).1;
    body["n"] = json!(4);
    body
}

#[tokio::test]
async fn a_client_that_stops_reading_is_disconnected_and_its_upstream_cancelled() {
    let mock = Mock::start();
    let gateway = with_server(&mock, "timeouts: {write_idle: 300ms}");
    let before = gateway.resident();
    let mut connection = Http1Connection::connect(gateway.address).await;
    let body = long_stream("same-chat", "one").to_string();
    connection.send(http1_post(CHAT, "", &body)).await;
    assert_eq!(connection.read_head().await.expect("a head").status(), 200);
    let http2 = client_builder().http2_prior_knowledge().build();
    let request = http2
        .expect("a client")
        .post(gateway.url(CHAT))
        .bearer_auth(KEY);
    let request = request.json(&long_stream("same-native", "two"));
    let response = request.send().await.expect("a header");
    assert_eq!(response.status(), 200);

    mock.until_seen("one", "cancelled", 1).await;
    mock.until_seen("two", "cancelled", 1).await;
    gateway.until_idle().await;
    let came = connection.read_until_closed().await;
    let text = String::from_utf8_lossy(&came);
    assert!(!text.contains("[DONE]") && !text.ends_with("\r\n0\r\n\r\n"));
    let came = response.text().await;
    assert!(!came.is_ok_and(|text| text.ends_with("data: [DONE]\n\n")));
    let grown = gateway.resident().saturating_sub(before);
    assert!(grown < MEMORY_GROWTH, "{grown} KiB");
    assert_well(&gateway).await;
}

#[tokio::test]
async fn a_client_that_reads_a_long_response_slowly_gets_all_of_it() {
    let mock = Mock::start();
    let gateway = with_server(&mock, "timeouts: {write_idle: 10s}");
    for model in ["other-chat", "same-native"] {
        let body = request("chat", model, "mock:long=4000000", false)
            .1
            .to_string();
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(64 << 10).expect("a size");
        let stream = socket.connect(gateway.address).await;
        let mut connection = Http1Connection::new(stream.expect("a connection"));
        connection.send(http1_post(CHAT, "", &body)).await;
        let head = connection.read_head().await.expect("a head");
        let length = head.header("content-length").map(str::parse);
        let length: usize = length.expect("a length").expect("a number");
        // In all longer than it may be silent, and never nearly that long without reading.
        let step = length / 400 + 1;
        let mut left = length;
        while left > 0 {
            tokio::time::sleep(Duration::from_millis(30)).await;
            left -= connection.read_exact(step.min(left)).await.len();
        }
    }
    assert_well(&gateway).await;
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_no_state() {
    let mock = Mock::start();
    let gateway = with_server(&mock, "timeouts: {header: 300ms, body_idle: 300ms}");
    let (path, body) = request("messages", "same-chat", "hello", false);
    let whole = http1_post(&path, "", &body.to_string());
    let mut kept = Vec::new();
    // In the header, in the body; gone with a reset, gone for writing, or there and silent.
    for cut in [0, 1, 40, whole.len() - 30, whole.len() - 1] {
        for kind in 0..3 {
            let mut connection = Http1Connection::connect(gateway.address).await;
            connection.send(&whole.as_bytes()[..cut]).await;
            match kind {
                0 => connection
                    .stream
                    .set_zero_linger()
                    .expect("a socket option"),
                1 => {
                    let shut = tokio::io::AsyncWriteExt::shutdown(&mut connection.stream);
                    shut.await.expect("it is shut");
                    kept.push((format!("{cut} bytes, way {kind}"), connection));
                }
                _ => kept.push((format!("{cut} bytes, way {kind}"), connection)),
            }
        }
    }
    for (what, mut connection) in kept {
        let text = timeout(TIMEOUT / 2, connection.read_until_closed()).await;
        let text = text.unwrap_or_else(|_| panic!("{what}: still there"));
        let text = String::from_utf8_lossy(&text);
        let refused = text.is_empty() || text.starts_with("HTTP/1.1 4");
        assert!(refused, "{what}: {text}");
    }
    assert_well(&gateway).await;
}

/// Waits until the first request to a model has ended, however it did.
async fn until_ended(gateway: &Gateway, model: &str) {
    let label = format!("model=\"{model}\"");
    wait_until("the end of a request", async || {
        let requests = gateway.metric("omniglot_requests_total").await;
        requests.iter().any(|line| line.contains(&label))
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_while_its_request_is_translated_causes_none_to_an_upstream() {
    let mock = Mock::start();
    let gateway = with_server(&mock, "body_limit: 64MiB");
    let mut connection = Http1Connection::connect(gateway.address).await;
    // So many that their translation takes far longer than the end of the connection to arrive.
    let turns = vec![json!({"role": "user", "content": [{"type": "text", "text": "one"}]}); 60_000];
    let mut body = request("chat", "same-messages", "mock:name=left", false).1;
    let messages = body["messages"].as_array_mut().expect("a list");
    messages.extend(turns);
    connection
        .send(http1_post(CHAT, "", &body.to_string()))
        .await;
    drop(connection);
    until_ended(&gateway, "same-messages").await;
    assert_eq!(mock.seen("left", "started").await, 0);
    assert_well(&gateway).await;
}

#[tokio::test]
async fn a_client_that_leaves_before_the_next_attempt_causes_none() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = format!(
        "{config}  - {{id: again, retries: {{attempts: 2, backoff: 5s}}, upstreams: [{{name: mock-chat, model: theirs}}]}}\n"
    );
    let gateway = Gateway::start(&config);
    let body = request("chat", "again", "mock:error=500 mock:name=once", false).1;
    let mut connection = Http1Connection::connect(gateway.address).await;
    connection
        .send(http1_post(CHAT, "", &body.to_string()))
        .await;
    mock.until_seen("once", "started", 1).await;
    drop(connection);
    until_ended(&gateway, "again").await;
    assert_eq!(mock.seen("once", "started").await, 1);
    assert_well(&gateway).await;
}

/// Every place of a format where a client's own structure may stand, with a hole for it.
fn places(format: &str, model: &str) -> Vec<String> {
    let hole = "\"HOLE\"";
    let texts = match format {
        "chat" => vec![
            format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":{hole}}}]}}"#),
            format!(
                r#"{{"model":"{model}","messages":[{{"role":"user","content":"x"}}],"tools":[{{"type":"function","function":{{"name":"f","parameters":{hole}}}}}]}}"#
            ),
            format!(
                r#"{{"model":"{model}","messages":[{{"role":"user","content":"x"}}],"max_tokens":{hole},"temperature":{hole},"seed":{hole}}}"#
            ),
        ],
        "messages" => vec![
            format!(
                r#"{{"model":"{model}","max_tokens":9,"messages":[{{"role":"user","content":{hole}}}]}}"#
            ),
            format!(
                r#"{{"model":"{model}","max_tokens":9,"messages":[{{"role":"user","content":"x"}}],"tools":[{{"name":"f","input_schema":{hole}}}]}}"#
            ),
            format!(
                r#"{{"model":"{model}","max_tokens":{hole},"temperature":{hole},"messages":[{{"role":"user","content":"x"}}]}}"#
            ),
        ],
        "responses" => vec![
            format!(r#"{{"model":"{model}","input":{hole}}}"#),
            format!(
                r#"{{"model":"{model}","input":"x","tools":[{{"type":"function","name":"f","parameters":{hole}}}]}}"#
            ),
            format!(
                r#"{{"model":"{model}","input":"x","max_output_tokens":{hole},"temperature":{hole}}}"#
            ),
        ],
        _ => vec![
            format!(r#"{{"contents":{hole}}}"#),
            format!(
                r#"{{"contents":[{{"role":"user","parts":[{{"text":"x"}}]}}],"tools":[{{"functionDeclarations":[{{"name":"f","parameters":{hole}}}]}}]}}"#
            ),
            format!(
                r#"{{"contents":[{{"role":"user","parts":[{{"text":"x"}}]}}],"generationConfig":{{"maxOutputTokens":{hole},"temperature":{hole},"seed":{hole}}}}}"#
            ),
        ],
    };
    texts
        .into_iter()
        .map(|text| text.replace(hole, "HOLE"))
        .collect()
}

/// Each place filled with each of these, in every pair of formats.
async fn assert_never_a_failure(gateway: &Gateway, fillings: &[(String, bool)]) {
    for (format, _) in FORMATS {
        for (upstream, _) in FORMATS {
            let model = format!("same-{upstream}");
            let (path, _) = request(format, &model, "", false);
            for place in places(format, &model) {
                for (filling, always_refused) in fillings {
                    let body = place.replace("HOLE", filling);
                    let response = post(gateway.url(&path), body).await;
                    let what = &filling[..filling.len().min(60)];
                    let what = format!("{format} to {upstream}: {what} in {place}");
                    let refused = (400..500).contains(&response.status);
                    let text = String::from_utf8_lossy(&response.body);
                    let fine = refused || (!always_refused && response.status == 200);
                    assert!(fine, "{what}: {} {text}", response.status);
                    if refused {
                        response.error(format);
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn deep_nesting_is_refused_in_every_field() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let nested = |depth: usize, open: &str, middle: &str, close: &str| {
        open.repeat(depth) + middle + &close.repeat(depth)
    };
    let mut fillings = Vec::new();
    for (deepest, open, middle, close) in [
        (100_000, "[", "", "]"),
        (100_000, r#"{"a":"#, "1", "}"),
        (1000, r#"{"type":"object","properties":{"a":"#, "{}", "}}"),
        (1000, r#"{"anyOf":["#, "{}", "]}"),
    ] {
        // Too deep for a stack, and the deepest that a reader may still take.
        fillings.push((nested(deepest, open, middle, close), true));
        fillings.push((nested(120, open, middle, close), false));
        fillings.push((nested(50, open, middle, close), false));
    }
    let before = gateway.resident();
    assert_never_a_failure(&gateway, &fillings).await;
    let grown = gateway.resident().saturating_sub(before);
    assert!(grown < MEMORY_GROWTH, "{grown} KiB");
    assert_well(&gateway).await;
}

#[tokio::test]
async fn huge_numbers_and_texts_cause_no_server_error() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let fillings = [
        "1e999999".to_owned(),
        "-1e999999".to_owned(),
        "9".repeat(400),
        format!("-{}", "9".repeat(400)),
        format!("0.{}1", "0".repeat(400)),
        "18446744073709551616".to_owned(),
        "-9223372036854775809".to_owned(),
        "-0".to_owned(),
        "\"\\u0000\\u001f\\u007f\\ufeff\"".to_owned(),
        "\"\\ud800\"".to_owned(),
        r#"{"a":1,"a":2}"#.to_owned(),
        "[null,null]".to_owned(),
        r#"[{"role":"user","role":"system","content":"x"}]"#.to_owned(),
    ];
    let fillings = fillings.map(|filling| (filling, false));
    assert_never_a_failure(&gateway, &fillings).await;
    assert_well(&gateway).await;
}

#[tokio::test]
async fn a_compressed_body_is_refused_and_never_decompressed() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![b' '; 64 << 20]).expect("memory");
    let bomb = encoder.finish().expect("memory");
    let before = gateway.resident();
    for (format, _) in FORMATS {
        for coding in ["gzip", "br", "deflate", "zstd", "gzip, gzip"] {
            let (path, _) = request(format, "same-chat", "", false);
            let asked = client().post(gateway.url(&path)).bearer_auth(KEY);
            let asked = asked.header("content-type", "application/json");
            let response = send(asked.header("content-encoding", coding).body(bomb.clone())).await;
            assert_eq!(response.status, 415, "{format}: {}", response.text());
            assert!(
                response.error(format).contains(coding),
                "{}",
                response.text()
            );
        }
    }
    let grown = gateway.resident().saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB");
    assert_well(&gateway).await;
}

#[tokio::test]
async fn control_characters_in_headers_and_names_are_not_forwarded() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let (path, body) = request("chat", "same-chat", "mock:name=reached", false);
    for line in [
        "x-a: b\0c",
        "x-a: b\rc",
        "x-a: b\x01c",
        "x-a: b\x7fc",
        "x\0a: b",
        "x a: b",
        ": b",
        "x-a: b\r\n folded",
    ] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        let more = format!("connection: close\r\n{line}\r\n");
        connection
            .send(http1_post(&path, &more, &body.to_string()))
            .await;
        let said = connection.read_until_closed().await;
        let said = String::from_utf8_lossy(&said);
        let refused = said.is_empty() || said.starts_with("HTTP/1.1 4");
        assert!(refused, "{line:?}: {said}");
    }
    assert_eq!(mock.seen("reached", "started").await, 0);
    for model in [
        "../same-chat",
        "same-chat/..",
        "same-chat?x=1",
        "same-chat#",
        "//same-chat",
        "%2e%2e",
    ] {
        for (format, _) in FORMATS {
            let (path, body) = request(format, model, "mock:name=reached", false);
            let path = match format {
                "native" => {
                    let id: String =
                        url::form_urlencoded::byte_serialize(model.as_bytes()).collect();
                    path.replace(model, &id)
                }
                _ => path,
            };
            let response = post(gateway.url(&path), body.to_string()).await;
            assert_eq!(
                response.status,
                404,
                "{format} {model}: {}",
                response.text()
            );
            response.error(format);
        }
    }
    assert_eq!(mock.seen("reached", "started").await, 0);
    assert_well(&gateway).await;
}

/// A connection whose requests can be taken back.
async fn http2(gateway: &Gateway) -> h2::client::SendRequest<Bytes> {
    let stream = TcpStream::connect(gateway.address)
        .await
        .expect("a connection");
    let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    tokio::spawn(async move {
        // However it ends.
        let _ = connection.await;
    });
    sender
}

#[tokio::test]
async fn http2_streams_opened_and_reset_at_once_leave_no_state() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let body = request("chat", "same-chat", "mock:wait=never mock:name=reset", true).1;
    let body = Bytes::from(body.to_string());
    let before = gateway.resident();
    for _ in 0..5 {
        let mut sender = http2(&gateway).await;
        for _ in 0..400 {
            let Ok(ready) = timeout(TIMEOUT, sender.ready()).await.expect("no hang") else {
                // Hung up on: that is an answer too.
                break;
            };
            sender = ready;
            let asked = http::Request::post(gateway.url(CHAT))
                .header("authorization", format!("Bearer {KEY}"))
                .header("content-type", "application/json");
            let asked = asked.body(()).expect("a request");
            let Ok((_, mut stream)) = sender.send_request(asked, false) else {
                break;
            };
            let _ = stream.send_data(body.clone(), true);
            stream.send_reset(h2::Reason::CANCEL);
        }
    }
    gateway.until_idle().await;
    wait_until("the mock is left alone", async || {
        mock.seen("reset", "started").await
            == mock.seen("reset", "cancelled").await + mock.seen("reset", "finished").await
    })
    .await;
    let grown = gateway.resident().saturating_sub(before);
    assert!(grown < MEMORY_GROWTH, "{grown} KiB");
    assert_well(&gateway).await;
}

#[tokio::test]
async fn many_silent_connections_do_not_block_other_clients() {
    let mock = Mock::start();
    let gateway = with_server(&mock, "timeouts: {header: 1h}");
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut connection = Http1Connection::connect(gateway.address).await;
        if number % 2 == 0 {
            connection
                .send(&omniglot_test_support::http1_post_head(CHAT, "")[..30])
                .await;
        }
        silent.push(connection);
    }
    let (path, body) = request("native", "same-responses", "hello", false);
    let response = post(gateway.url(&path), json!(body).to_string()).await;
    assert_eq!(response.status, 200, "{}", response.text());
    drop(silent);
    assert_well(&gateway).await;
}

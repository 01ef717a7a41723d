//! Upstreams that do what no HTTP library does: cut, broken, early, late, stale and silent responses.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use omniglot_test_support::{
    Gateway, Http1Connection, Http1Upstream, KEY, Mock, find_bytes, free_address, new_client,
    request, single_upstream_config,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bodies::{CHAT, MIB, body};

const JSON: &str = r#"{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

const EVENT: &str = r#"data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"},"finish_reason":null}]}"#;

/// Short enough for a test, for upstreams that are silent on purpose.
const SHORT_TIMEOUTS: &str = "timeouts: {first_byte: 300ms, idle: 300ms}";

fn by_length() -> String {
    let length = JSON.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{JSON}"
    )
}

fn in_chunks() -> String {
    let (first, second) = JSON.split_at(50);
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    )
}

fn with_json_type(head: &str, rest: &str) -> String {
    format!("{head}\r\ncontent-type: application/json\r\n{rest}")
}

/// Status, the value of `x-omniglot-attempts`, and the body.
async fn send_request(
    gateway: &Gateway,
    prompt: &str,
    stream: bool,
) -> (u16, Option<String>, String) {
    let (_, body) = request("chat", "m", prompt, stream);
    let call = new_client().post(gateway.url(CHAT)).bearer_auth(KEY);
    let response = call.json(&body).send().await.expect("an answer");
    let attempts = response.headers().get("x-omniglot-attempts");
    let attempts = attempts.map(|value| value.to_str().expect("text").to_owned());
    let status = response.status().as_u16();
    (
        status,
        attempts,
        response.text().await.expect("a whole body"),
    )
}

/// Answers the request whose prompt is a number with the reply of that number, and closes.
async fn scripted(replies: Vec<String>) -> Http1Upstream {
    let replies = Arc::new(replies);
    Http1Upstream::start(move |mut connection, _| {
        let replies = Arc::clone(&replies);
        async move {
            while let Some(request) = connection.read_message().await {
                let asked: Value = serde_json::from_slice(&request.body).expect("JSON");
                let prompt = asked["messages"][0]["content"].as_str().expect("text");
                let number: usize = prompt.parse().expect("a number");
                connection.send(&replies[number]).await;
                // What says when it ends may be followed by another request.
                if replies[number] != by_length() {
                    return;
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_response_cut_at_any_byte_is_a_bad_gateway() {
    let mut replies = vec![by_length()];
    for whole in [by_length(), in_chunks()] {
        let head = find_bytes(whole.as_bytes(), b"\r\n\r\n").expect("a head") + 4;
        let cuts = (0..head).step_by(5).chain((head..whole.len()).step_by(17));
        replies.extend(cuts.map(|cut| whole[..cut].to_owned()));
        replies.push(whole[..whole.len() - 1].to_owned());
    }
    // The last byte of the last chunk adds nothing to what was said.
    replies.pop();
    let upstream = scripted(replies.clone()).await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    for (number, reply) in replies.iter().enumerate().skip(1) {
        let (status, attempts, text) = send_request(&gateway, &number.to_string(), false).await;
        assert_eq!(status, 502, "after {reply:?}: {text}");
        assert_eq!(attempts.as_deref(), Some("1"));
        assert!(!text.contains("hello"), "{text}");
    }
    assert_eq!(send_request(&gateway, "0", false).await.0, 200);
    gateway.until_idle().await;
}

#[tokio::test]
async fn a_response_that_is_not_http_is_a_bad_gateway() {
    let ok = "HTTP/1.1 200 OK";
    let length = JSON.len();
    let replies = vec![
        by_length(),
        "HELLO WORLD\r\n\r\n".to_owned(),
        "\0\0\0\0\r\n\r\n".to_owned(),
        "HTTP/1.1 abc OK\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nno colon here\r\ncontent-length: {length}\r\n\r\n{JSON}"),
        format!("HTTP/1.1 200 OK\r\nx: \0\r\ncontent-length: {length}\r\n\r\n{JSON}"),
        with_json_type(ok, &format!("content-length: abc\r\n\r\n{JSON}")),
        with_json_type(ok, &format!("content-length: -5\r\n\r\n{JSON}")),
        with_json_type(
            ok,
            &format!("content-length: {length}\r\ncontent-length: 9\r\n\r\n{JSON}"),
        ),
        with_json_type(ok, &format!("content-length: {}\r\n\r\n{JSON}", length + 9)),
        with_json_type(ok, &format!("content-length: {}\r\n\r\n{JSON}", length - 9)),
        with_json_type(
            ok,
            &format!("transfer-encoding: chunked\r\n\r\nzz\r\n{JSON}\r\n0\r\n\r\n"),
        ),
        with_json_type(
            ok,
            &format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n{JSON}??0\r\n\r\n"),
        ),
        with_json_type(
            ok,
            &format!("transfer-encoding: chunked\r\n\r\n-5\r\n{JSON}\r\n0\r\n\r\n"),
        ),
        with_json_type(ok, "content-length: 0\r\n\r\n"),
        "HTTP/1.1 100 Continue\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chess\r\n\r\ne2e4"
            .to_owned(),
        with_json_type("HTTP/1.1 204 No Content", "\r\n"),
        with_json_type(
            "HTTP/1.1 302 Found",
            "location: /\r\ncontent-length: 0\r\n\r\n",
        ),
        with_json_type("HTTP/1.1 600 What", "content-length: 2\r\n\r\n{}"),
        format!("{ok}\r\nx: {}\r\n\r\n", "a".repeat(2 * MIB)),
        String::new(),
    ];
    let upstream = scripted(replies.clone()).await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    for (number, reply) in replies.iter().enumerate().skip(1) {
        for stream in [false, true] {
            let (status, attempts, text) =
                send_request(&gateway, &number.to_string(), stream).await;
            let shown = &reply[..reply.len().min(300)];
            assert_eq!(status, 502, "after {shown:?}: {text}");
            assert_eq!(attempts.as_deref(), Some("1"), "after {shown:?}");
        }
        assert_eq!(
            send_request(&gateway, "0", false).await.0,
            200,
            "after {number}"
        );
    }
    gateway.until_idle().await;
}

#[tokio::test]
async fn an_unusual_but_valid_response_passes() {
    let hint = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    let replies = vec![
        by_length(),
        format!("{go_on}{}", by_length()),
        format!("{go_on}{hint}{hint}{}", by_length()),
        in_chunks(),
        in_chunks().replace("\r\n0\r\n\r\n", "\r\n0\r\nx-trailer: 1\r\n\r\n"),
        with_json_type("HTTP/1.1 200 OK", &format!("\r\n{JSON}")),
        with_json_type("HTTP/1.0 200 OK", &format!("\r\n{JSON}")),
        with_json_type("HTTP/1.1 200", &format!("\r\n{JSON}")),
        format!("HTTP/1.1 200 OK\r\n\r\n{JSON}"),
    ];
    let upstream = scripted(replies.clone()).await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    for (number, reply) in replies.iter().enumerate() {
        let (status, attempts, text) = send_request(&gateway, &number.to_string(), false).await;
        assert_eq!(status, 200, "after {reply:?}: {text}");
        assert_eq!(attempts.as_deref(), Some("1"), "after {reply:?}");
        assert_eq!(text, JSON);
    }
    gateway.until_idle().await;
}

#[tokio::test]
async fn endless_informational_responses_are_a_failure() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(1000);
    let upstream = scripted(vec![format!("{hints}{}", by_length())]).await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    let (status, _, text) = send_request(&gateway, "0", false).await;
    assert_eq!(status, 502, "{text}");
    gateway.until_idle().await;
}

#[tokio::test]
async fn a_response_may_arrive_byte_by_byte() {
    let upstream = Http1Upstream::start(|mut connection, _| async move {
        connection
            .stream
            .set_nodelay(true)
            .expect("a socket option");
        while connection.read_message().await.is_some() {
            for byte in in_chunks().as_bytes() {
                connection.send([*byte]).await;
            }
        }
    })
    .await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    for _ in 0..2 {
        let (status, _, text) = send_request(&gateway, "hello", false).await;
        assert_eq!((status, text.as_str()), (200, JSON));
        // The connection waits in the pool when the request is over, not when its reply is out.
        gateway.until_idle().await;
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn a_response_before_the_body_was_read_passes() {
    let upstream = Http1Upstream::start(|mut connection, _| async move {
        connection.read_head().await.expect("a head");
        let refusal = r#"{"error":{"message":"too much","type":"invalid_request_error","param":null,"code":null}}"#;
        let length = refusal.len();
        let rest = format!("connection: close\r\ncontent-length: {length}\r\n\r\n{refusal}");
        connection.send(with_json_type("HTTP/1.1 413 Content Too Large", &rest))
            .await;
        connection.stream.shutdown().await.expect("the end is sent");
        connection.read_until_closed().await;
    })
    .await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    for size in [200, 10 * MIB] {
        let call = new_client().post(gateway.url(CHAT)).bearer_auth(KEY);
        let response = call.body(body(size)).send().await.expect("an answer");
        assert_eq!(response.status(), 413);
        assert!(response.text().await.expect("a body").contains("too much"));
    }
    gateway.until_idle().await;
}

/// What comes next on such a connection would be read as the rest of the body.
#[tokio::test]
async fn a_connection_with_an_unread_request_is_not_reused() {
    let upstream = Http1Upstream::start(|mut connection, _| async move {
        let head = connection.read_head().await.expect("a head");
        let length = head.header("content-length").expect("a length");
        let length: usize = length.parse().expect("a number");
        if length < MIB {
            connection.read_exact(length).await;
            connection.send(by_length()).await;
        } else {
            // All that the connection holds is full by now.
            tokio::time::sleep(Duration::from_millis(600)).await;
            let refusal = by_length().replace("200 OK", "400 Bad Request");
            connection.send(refusal).await;
            // Whoever drains it reads a request of somebody else.
            connection.read_exact(length).await;
        }
        pending::<()>().await;
    })
    .await;
    let idle = format!("{}, timeouts: {{idle: 300ms}}", upstream.base_url());
    let gateway = Gateway::start(&single_upstream_config("", &idle));
    let call = new_client().post(gateway.url(CHAT)).bearer_auth(KEY);
    let response = call.body(body(20 * MIB)).send().await.expect("an answer");
    assert_eq!(response.status(), 400);
    let (status, _, text) = send_request(&gateway, "hello", false).await;
    assert_eq!((status, text.as_str()), (200, JSON));
    assert_eq!(upstream.connections(), 2);
}

#[tokio::test]
async fn a_dead_pooled_connection_costs_no_attempt() {
    let upstream = Http1Upstream::start(|mut connection, number| async move {
        assert!(connection.read_message().await.is_some());
        connection.send(by_length()).await;
        // Every other connection takes the next request and hangs up on it; the rest hang up
        // before it, or just when it is on its way.
        if number % 2 == 0 {
            connection.read_message().await;
        }
    })
    .await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    for round in 0..20 {
        let (status, attempts, text) = send_request(&gateway, "hello", false).await;
        assert_eq!(status, 200, "round {round}: {text}");
        assert_eq!(attempts.as_deref(), Some("1"), "round {round}");
    }
    assert!(upstream.connections() >= 20, "none was good for two");
    let failures = gateway.metric("omniglot_upstream_failures_total{").await;
    assert!(failures.is_empty(), "{failures:?}");
    gateway.until_idle().await;
}

/// Bytes to and from the mock; a doomed connection hangs up on the next thing it is sent.
async fn relay_until(doomed: impl Fn() -> bool, mut outside: TcpStream, mock: SocketAddr) {
    let mut inside = TcpStream::connect(mock).await.expect("the mock");
    let (mut there, mut back) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let passed = tokio::select! {
            Ok(count) = outside.read(&mut there) => {
                if count == 0 || doomed() {
                    return;
                }
                inside.write_all(&there[..count]).await
            }
            Ok(count) = inside.read(&mut back) => outside.write_all(&back[..count]).await,
            else => return,
        };
        if passed.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_dead_http2_connection_costs_no_attempt() {
    let mock = Mock::start();
    // Connections up to this number are doomed: all that were there when a request had been served.
    let doomed = Arc::new(AtomicUsize::new(0));
    let (below, address) = (Arc::clone(&doomed), mock.address);
    let upstream = Http1Upstream::start(move |connection, number| {
        let below = Arc::clone(&below);
        let doomed = move || number < below.load(Ordering::Acquire);
        relay_until(doomed, connection.stream, address)
    })
    .await;
    let base = upstream.base_url();
    let gateway = Gateway::start(&single_upstream_config(
        "",
        &format!("{base}, protocol: http2"),
    ));
    for round in 0..10 {
        let (status, attempts, text) = send_request(&gateway, "hello", round % 2 == 0).await;
        assert_eq!(status, 200, "round {round}: {text}");
        assert_eq!(attempts.as_deref(), Some("1"), "round {round}");
        doomed.store(upstream.connections(), Ordering::Release);
    }
    assert!(upstream.connections() >= 10, "none was good for two");
    let failures = gateway.metric("omniglot_upstream_failures_total{").await;
    assert!(failures.is_empty(), "{failures:?}");
    gateway.until_idle().await;
}

#[tokio::test]
async fn bytes_after_a_response_do_not_become_the_next_one() {
    let upstream = Http1Upstream::start(|mut connection, _| async move {
        while connection.read_message().await.is_some() {
            let forged = by_length().replace("hello", "forged");
            connection.send(by_length() + &forged).await;
        }
    })
    .await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    for _ in 0..5 {
        let (status, _, text) = send_request(&gateway, "hello", false).await;
        assert_eq!((status, text.as_str()), (200, JSON));
    }
}

/// Sends the bytes, and then nothing more for as long as the connection lives.
async fn silent_after(bytes: String) -> Http1Upstream {
    Http1Upstream::start(move |mut connection: Http1Connection, _| {
        let bytes = bytes.clone();
        async move {
            connection.read_message().await;
            connection.send(bytes).await;
            pending::<()>().await;
        }
    })
    .await
}

#[tokio::test]
async fn an_error_body_with_status_200_instead_of_a_stream_is_an_error() {
    let error = r#"{"error":{"message":"Busy.","type":"rate_limit_error","code":null}}"#;
    let head = "HTTP/1.1 200 OK";
    let upstream = scripted(vec![
        with_json_type(head, &format!("\r\n{error}")),
        with_json_type(head, &format!("\r\n[{error}]")),
        format!("{head}\r\ncontent-type: text/event-stream\r\n\r\n{error}"),
    ])
    .await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    for number in 0..3 {
        let (status, _, text) = send_request(&gateway, &number.to_string(), true).await;
        assert_eq!(status, 429, "{number}: {text}");
        assert!(text.contains("Busy."), "{number}: {text}");
    }
    gateway.until_idle().await;
}

#[tokio::test]
async fn an_error_does_not_contain_the_upstreams_address() {
    let upstream = Http1Upstream::start(|mut connection, _| async move {
        while let Some(request) = connection.read_message().await {
            let host = request.header("host").expect("a host");
            let error = format!(r#"{{"error":{{"message":"bad: http://{host}/v1"}}}}"#);
            let length = format!("content-length: {}\r\n\r\n", error.len());
            let head = with_json_type("HTTP/1.1 400 Bad", &length);
            connection.send(format!("{head}{error}")).await;
        }
    })
    .await;
    let gateway = Gateway::start(&single_upstream_config("", &upstream.base_url()));
    let (status, _, text) = send_request(&gateway, "hello", false).await;
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("bad: http://***/v1"), "{text}");
    gateway.until_idle().await;
}

#[tokio::test]
async fn a_silent_upstream_is_a_timeout() {
    let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let whole = by_length();
    for (said, stream) in [
        ("", false),
        ("", true),
        ("HTTP/1.1 200", false),
        ("HTTP/1.1 100 Continue\r\n\r\n", false),
        (&whole[..whole.len() - 5], false),
        (events, true),
        (&format!("{events}: a comment and no event\n\n"), true),
        (&format!("{events}{}", &EVENT[..40]), true),
        ("HTTP/1.1 500 Oh\r\ncontent-length: 9\r\n\r\n{", false),
    ] {
        let upstream = silent_after(said.to_owned()).await;
        let gateway = Gateway::start(&single_upstream_config(
            "",
            &format!("{}, {SHORT_TIMEOUTS}", upstream.base_url()),
        ));
        let (status, _, text) = send_request(&gateway, "hello", stream).await;
        assert_eq!(status, 504, "after {said:?}: {text}");
        let failures = gateway.metric("omniglot_upstream_failures_total{").await;
        assert!(failures[0].contains("\"timeout\""), "{failures:?}");
        gateway.until_idle().await;
    }
}

#[tokio::test]
async fn a_stream_that_falls_silent_or_breaks_ends_with_an_error_event() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    let said = format!("{EVENT}\n\n");
    let chunk = format!("{:x}\r\n{said}\r\n", said.len());
    let silent = silent_after(format!("{head}\r\n{said}")).await;
    let breaking = scripted(vec![
        format!("{head}\r\n{said}"),
        format!("{head}\r\n{said}{}", &EVENT[..40]),
        format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}"),
        format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}zz\r\n"),
        format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}0\r\n\r\n"),
        format!("{head}content-length: 9000\r\n\r\n{said}"),
        format!("{head}\r\n{said}data: {{broken\n\n"),
    ])
    .await;
    for (upstream, number) in [(&silent, 0)]
        .into_iter()
        .chain((0..7).map(|n| (&breaking, n)))
    {
        let gateway = Gateway::start(&single_upstream_config(
            "",
            &format!("{}, {SHORT_TIMEOUTS}", upstream.base_url()),
        ));
        let (status, _, text) = send_request(&gateway, &number.to_string(), true).await;
        assert_eq!(status, 200, "{number}: {text}");
        let rest = text.strip_prefix(&said).expect("what was said comes first");
        assert!(rest.contains("\"error\""), "{number}: {text}");
        assert!(!rest.contains("[DONE]"), "{number}: {text}");
        gateway.until_idle().await;
    }
}

#[tokio::test]
async fn an_unreachable_upstream_is_a_bad_gateway() {
    for base in [
        format!("http://{}/v1", free_address()),
        format!("http://localhost:{}/v1", free_address().port()),
        format!("https://{}/v1", free_address()),
        "http://no-such-upstream.invalid/v1".to_owned(),
    ] {
        let gateway = Gateway::start(&single_upstream_config(
            "",
            &format!("base_url: \"{base}\""),
        ));
        for stream in [false, true] {
            let (status, attempts, text) = send_request(&gateway, "hello", stream).await;
            assert_eq!(status, 502, "{base}: {text}");
            assert_eq!(attempts.as_deref(), Some("1"));
            assert!(!text.contains("no-such-upstream"), "{text}");
        }
        let failures = gateway.metric("omniglot_upstream_failures_total{").await;
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(failures[0].contains("\"connect\"") && failures[0].ends_with(" 2"));
        gateway.until_idle().await;
    }
}

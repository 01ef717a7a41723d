//! Refusals of bytes that no HTTP library sends, and the state of the connection after them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use omniglot_test_support::{Gateway, KEY, TIMEOUT, error_message, request};
use serde_json::Value;

use super::GatewayWithLog;

/// A connection on which one request follows the other.
struct RawConnection {
    stream: TcpStream,
    unread: Vec<u8>,
}

struct RawResponse {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl RawConnection {
    fn to(gateway: &Gateway) -> RawConnection {
        let stream = TcpStream::connect(gateway.address).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
        let unread = Vec::new();
        RawConnection { stream, unread }
    }

    /// A gateway that has answered may have stopped reading.
    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// `None`: the connection has ended.
    fn more(&mut self) -> Option<()> {
        let mut buffer = [0; 65536];
        match self.stream.read(&mut buffer) {
            Ok(0) => None,
            Ok(count) => {
                self.unread.extend_from_slice(&buffer[..count]);
                Some(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("a hang"),
            Err(_) => None,
        }
    }

    /// The next answer with a length; `None`: the connection has ended instead.
    fn answer(&mut self, method: &str) -> Option<RawResponse> {
        let end = loop {
            let found = self.unread.windows(4).position(|four| four == b"\r\n\r\n");
            match found {
                Some(at) => break at + 4,
                None => self.more()?,
            }
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
        let status: u16 = head[9..12].parse().expect("a status");
        let length = match (method, of(&head, "content-length")) {
            ("HEAD", _) => 0,
            _ if status == 100 => 0,
            (_, length) => length.expect("a length").parse().expect("a number"),
        };
        while self.unread.len() < length {
            self.more()?;
        }
        let body = self.unread.drain(..length).collect();
        Some(RawResponse { status, head, body })
    }

    /// Either the connection takes another request, or it was said to close and does.
    fn assert_goes_on_or_ends(mut self, before: &RawResponse, what: &str) {
        if of(&before.head, "connection") == Some("close") {
            while self.more().is_some() {}
            assert!(
                self.unread.is_empty(),
                "{what}: nothing comes after the answer"
            );
            return;
        }
        self.send(good());
        match self.answer("POST") {
            Some(answer) => assert_eq!(answer.status, 200, "{what}"),
            None => panic!("{what}: the connection was to live on: {}", before.head),
        }
    }
}

fn of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn good() -> String {
    let (path, body) = request("chat", "same-chat", "hello", false);
    raw("POST", &path, "", &body.to_string())
}

fn raw(method: &str, path: &str, headers: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\n{headers}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_connection_stays_usable_after_a_refusal() {
    let watched = GatewayWithLog::start();
    let long = "x".repeat(300_000);
    let padded = format!(r#"{{"model":"unknown","x":"{long}"}}"#);
    for (method, path, headers, body, status) in [
        ("POST", "/nowhere", "", "{}", 404),
        ("POST", "/nowhere", "", padded.as_str(), 404),
        ("GET", "/v1/chat/completions", "", "", 405),
        ("PUT", "/v1/messages", "", padded.as_str(), 405),
        ("HEAD", "/v1/models", "", "", 405),
        (
            "HEAD",
            "/v1beta/models/same-native:generateContent",
            "",
            "",
            405,
        ),
        (
            "OPTIONS",
            "/v1/chat/completions",
            "origin: http://x\r\n",
            "",
            405,
        ),
        ("POST", "/v1/chat/completions", "", "{", 400),
        ("POST", "/v1/chat/completions", "", padded.as_str(), 404),
        (
            "POST",
            "/v1/messages",
            "content-type: text/plain\r\n",
            padded.as_str(),
            415,
        ),
        ("POST", "/v1/responses", "", r#"{"model":"same-chat"}"#, 400),
        ("POST", "/v1beta/models/x:predict", "", padded.as_str(), 404),
        (
            "POST",
            "/v1beta/models/same-native:generateContent",
            "expect: 100-continue\r\n",
            "",
            400,
        ),
        ("GET", "/v1/models/unknown", "", "", 404),
        ("GET", "/api/models?page=0", "", "", 400),
    ] {
        let what = format!("{method} {path}");
        let mut line = RawConnection::to(&watched.gateway);
        line.send(raw(method, path, headers, body));
        let mut answer = line.answer(method).expect("an answer");
        if answer.status == 100 {
            answer = line.answer(method).expect("an answer after it");
        }
        assert_eq!(answer.status, status, "{what}");
        assert!(of(&answer.head, "x-request-id").is_some(), "{what}");
        let close = of(&answer.head, "connection") == Some("close");
        assert!(!close, "{what}: {}", answer.head);
        line.assert_goes_on_or_ends(&answer, &what);
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn a_key_refused_before_the_body_was_read_leaves_the_connection_in_a_clean_state() {
    let watched = GatewayWithLog::start();
    for size in [0, 1, 100_000, 3_000_000] {
        let body = "x".repeat(size);
        let request = raw("POST", "/v1/messages", "", &body).replace(KEY, "wrong");
        let mut line = RawConnection::to(&watched.gateway);
        line.send(request);
        let answer = line.answer("POST").expect("an answer");
        assert_eq!(answer.status, 401, "{size}");
        let json: Value = serde_json::from_slice(&answer.body).expect("JSON");
        error_message("messages", 401, &json);
        line.assert_goes_on_or_ends(&answer, &size.to_string());
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn a_header_that_is_too_long_is_refused() {
    let watched = GatewayWithLog::start();
    let field = |length| format!("x-field: {}\r\n", "v".repeat(length));
    let many: String = (0..200)
        .map(|n| format!("x-{n}: {}\r\n", "v".repeat(400)))
        .collect();
    let flood: String = (0..5000).map(|n| format!("x-{n}: v\r\n")).collect();
    let query = |length| format!("/v1/chat/completions?x={}", "q".repeat(length));
    let (long, too_long) = (query(65_000), query(70_000));
    for (path, headers, statuses) in [
        ("/v1/chat/completions", field(60_000), &[200][..]),
        ("/v1/chat/completions", field(70_000), &[431]),
        ("/v1/chat/completions", many, &[431]),
        ("/v1/chat/completions", flood, &[400, 431]),
        ("/v1/chat/completions", field(3_000_000), &[400, 431]),
        (&long, field(1000), &[431]),
        (&too_long, String::new(), &[400, 431]),
    ] {
        let (_, body) = request("chat", "same-chat", "hello", false);
        let what = format!("{} bytes of headers", headers.len());
        let mut line = RawConnection::to(&watched.gateway);
        line.send(raw("POST", path, &headers, &body.to_string()));
        match line.answer("POST") {
            Some(answer) => {
                assert!(statuses.contains(&answer.status), "{what}: {}", answer.head);
                line.assert_goes_on_or_ends(&answer, &what);
            }
            None => assert!(statuses.contains(&400), "{what}: an answer was due"),
        }
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn bytes_that_are_not_http_get_an_error_or_a_closed_connection() {
    let watched = GatewayWithLog::start();
    for bytes in [
        &b"\r\n\r\n\r\n"[..],
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /v1/messages HTTP/9.9\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nx: a\x00b\r\n\r\n",
        b"GET /v1/mod\xffels HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame at all",
    ] {
        let mut line = RawConnection::to(&watched.gateway);
        line.send(bytes);
        // Nothing more will come, so nothing may be waited for.
        let _ = line.stream.shutdown(std::net::Shutdown::Write);
        while line.more().is_some() {}
        let text = String::from_utf8_lossy(&line.unread);
        let good = text.starts_with("HTTP/1.1 200");
        assert!(!good, "{}: {text}", String::from_utf8_lossy(bytes));
    }
    watched.assert_well().await;
}

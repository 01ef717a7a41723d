//! Every protocol towards clients and upstreams, and clients that break its rules.

use futures_util::future::join_all;
use http::Version;
use omniglot_test_support::{
    CertificateAuthority, FORMATS, Gateway, Http1Connection, Http1Upstream, KEY, Mock, TIMEOUT,
    TlsProxy, every_format_config, free_address, http1_post, http1_post_head, new_client, request,
    single_upstream_config, wait_until,
};
use serde_json::Value;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

use crate::bodies::{CHAT, MIB, body, digest, http2, send, start_gateway};

fn chat_body(prompt: &str, stream: bool) -> String {
    request("chat", "m", prompt, stream).1.to_string()
}

/// Asks in a format, for JSON and for a stream, and returns what came.
async fn send_both_kinds(client: &reqwest::Client, base: &str, format: &str) -> Version {
    let mut version = Version::HTTP_09;
    for stream in [false, true] {
        let (path, body) = request(format, &format!("same-{format}"), "hello", stream);
        let call = client.post(format!("{base}{path}")).bearer_auth(KEY);
        let response = call.json(&body).send().await.expect("an answer");
        version = response.version();
        assert_eq!(response.status(), 200, "{format}");
        let text = response.text().await.expect("a body");
        assert!(text.contains("hello"), "{format}: {text}");
    }
    version
}

#[tokio::test]
async fn the_plain_port_accepts_http1_and_http2() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let base = gateway.url("");
    for (format, _) in FORMATS {
        assert_eq!(
            send_both_kinds(&new_client(), &base, format).await,
            Version::HTTP_11
        );
        assert_eq!(
            send_both_kinds(&http2(), &base, format).await,
            Version::HTTP_2
        );
    }
}

/// What load balancers ask to see whether somebody is there.
#[tokio::test]
async fn minimal_requests_are_served() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (line, status) in [("GET /", 404), ("OPTIONS /", 404), ("A /", 404)] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        connection.send(format!("{line} HTTP/1.0\r\n\r\n")).await;
        let response = connection.read_message().await.expect("a reply");
        assert_eq!(response.status(), status, "{line}");
    }
}

/// Another proxy before or behind the gateway may read such a header differently.
#[tokio::test]
async fn an_ambiguous_header_is_refused_and_the_connection_closed() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let (path, body) = request("chat", "same-chat", "hello", false);
    let (body, chunked) = (body.to_string(), "transfer-encoding: chunked\r\n");
    let whole = http1_post(&path, "", &body);
    let in_chunks = |more: &str| {
        let head = http1_post_head(&path, more);
        format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
    };
    for (name, text, status) in [
        ("as it should be", whole.clone(), 200),
        ("in chunks", in_chunks(chunked), 200),
        (
            "a line that ends with LF",
            whole.replacen("gateway\r\n", "gateway\n", 1),
            400,
        ),
        ("no host", whole.replacen("host: gateway\r\n", "", 1), 400),
        (
            "two hosts",
            whole.replacen("host: gateway\r\n", "host: gateway\r\nhost: other\r\n", 1),
            400,
        ),
        ("doubled", in_chunks(&chunked.repeat(2)), 400),
        (
            "another first",
            in_chunks("transfer-encoding: gzip, chunked\r\n"),
            400,
        ),
    ] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        connection.send(format!("{text}{whole}")).await;
        let response = connection.read_message().await.expect("a reply");
        assert_eq!(response.status(), status, "{name}");
        let next = connection.read_message().await;
        assert_eq!(next.is_some(), status == 200, "{name}: the next request");
    }
}

#[tokio::test]
async fn a_tls_listener_negotiates_the_protocol() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    let (cert, key) = authority.issue_files("localhost");
    let secure = free_address();
    let listen = format!(
        "listen: [LISTEN, {{addr: \"{secure}\", tls: {{cert: {}, key: {}}}}}]",
        cert.display(),
        key.display()
    );
    let config = every_format_config(mock.address).replace("listen: LISTEN", &listen);
    let gateway = Gateway::start(&config);
    let base = format!("https://localhost:{}", secure.port());
    let both = authority.client().build().expect("a client");
    let old = authority.client().http1_only().build().expect("a client");
    for (format, _) in FORMATS {
        assert_eq!(send_both_kinds(&both, &base, format).await, Version::HTTP_2);
        assert_eq!(send_both_kinds(&old, &base, format).await, Version::HTTP_11);
        let plain = gateway.url("");
        assert_eq!(
            send_both_kinds(&new_client(), &plain, format).await,
            Version::HTTP_11
        );
    }
}

#[tokio::test]
async fn large_bodies_arrive_whole_over_tls() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    let (cert, key) = authority.issue_files("localhost");
    let upstream = format!("base_url: \"http://{}/v1\"", mock.address);
    let listen = format!(
        "listen: {{addr: LISTEN, tls: {{cert: {}, key: {}}}}}",
        cert.display(),
        key.display()
    );
    let config = single_upstream_config("", &upstream).replace("listen: LISTEN", &listen);
    let gateway = Gateway::start(&config);
    let url = format!("https://localhost:{}{CHAT}", gateway.address.port());
    let body = body(20 * MIB);
    for builder in [authority.client(), authority.client().http1_only()] {
        let client = builder.build().expect("a client");
        let (status, text) = send(&client, url.clone(), body.clone().into()).await;
        assert_eq!(status, 200, "{text}");
        assert!(text.contains(&digest(&body)), "{text}");
    }
}

#[tokio::test]
async fn an_upstream_is_reached_over_tls_in_the_negotiated_protocol() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    for (protocol, expected) in [("auto", "h2"), ("http1", "http/1.1"), ("http2", "h2")] {
        let relay = TlsProxy::start(&authority, "localhost", mock.address).await;
        let port = relay.address.port();
        let upstream = format!("base_url: \"https://localhost:{port}/v1\", protocol: {protocol}");
        let gateway = Gateway::start_with(&single_upstream_config("", &upstream), |command| {
            command.env("SSL_CERT_FILE", authority.file());
        });
        for stream in [false, true] {
            let sent = chat_body("hello", stream).into();
            let (status, text) = send(&new_client(), gateway.url(CHAT), sent).await;
            assert_eq!(status, 200, "{protocol}: {text}");
            assert!(text.contains("hello"), "{protocol}: {text}");
        }
        let body = body(5 * MIB);
        let (_, text) = send(&new_client(), gateway.url(CHAT), body.clone().into()).await;
        assert!(text.contains(&digest(&body)), "{protocol}: {text}");
        assert_eq!(relay.negotiated(), [expected], "one connection, used again");
        gateway.until_idle().await;
    }
}

#[tokio::test]
async fn an_upstream_with_a_wrong_certificate_gets_no_request() {
    let mock = Mock::start();
    let trusted = CertificateAuthority::new();
    let stranger = CertificateAuthority::new();
    for (authority, name) in [(&stranger, "localhost"), (&trusted, "other.example")] {
        let relay = TlsProxy::start(authority, name, mock.address).await;
        let port = relay.address.port();
        let upstream = format!("base_url: \"https://localhost:{port}/v1\"");
        let gateway = Gateway::start_with(&single_upstream_config("", &upstream), |command| {
            command.env("SSL_CERT_FILE", trusted.file());
        });
        let sent = chat_body("hello", false).into();
        let (status, text) = send(&new_client(), gateway.url(CHAT), sent).await;
        assert_eq!(status, 502, "{text}");
        assert!(!text.contains("localhost"), "details stay here: {text}");
        let failures = gateway.metric("omniglot_upstream_failures").await;
        let line = failures.iter().find(|line| line.contains("\"tls\""));
        assert!(
            line.is_some_and(|line| line.ends_with(" 1")),
            "{failures:?}"
        );
        gateway.until_idle().await;
    }
    let stats = new_client().get(mock.url("/mock/stats")).send().await;
    let stats: Value = stats.expect("an answer").json().await.expect("JSON");
    assert_eq!(stats["requests"], 0);
}

/// Plain bytes to the mock and back, so that connections can be counted.
async fn counted(mock: &Mock) -> Http1Upstream {
    let address = mock.address;
    Http1Upstream::start(move |mut connection, _| async move {
        let mut inside = TcpStream::connect(address).await.expect("the mock");
        // It ends as its ends do.
        let _ = copy_bidirectional(&mut connection.stream, &mut inside).await;
    })
    .await
}

#[tokio::test]
async fn many_streams_share_few_connections_to_an_http2_upstream() {
    const STREAMS: usize = 150;
    let mock = Mock::start();
    let between = counted(&mock).await;
    let upstream = format!("{}, protocol: http2", between.base_url());
    let gateway = Gateway::start(&single_upstream_config("", &upstream));
    let sent = chat_body("mock:name=many mock:wait=many mock:text=together", false);
    let (client, url) = (new_client(), gateway.url(CHAT));
    let (status, _) = send(&client, url.clone(), chat_body("hello", true).into()).await;
    assert_eq!(status, 200);
    let calls = join_all((0..STREAMS).map(|_| send(&client, url.clone(), sent.clone().into())));
    let release = async {
        wait_until("all of them wait", async || {
            mock.seen("many", "waiting").await == STREAMS as u64
        })
        .await;
        for _ in 0..STREAMS {
            mock.signal("many", 1).await;
        }
    };
    let (replies, ()) = tokio::join!(calls, release);
    for (status, text) in replies {
        assert_eq!(status, 200, "{text}");
        assert!(text.contains("together"), "{text}");
    }
    // When the first one is full, several may be opened side by side before one is there to be shared.
    let connections = between.connections();
    assert!(connections < STREAMS / 2, "{connections} connections");
    for _ in 0..20 {
        let (status, _) = send(&client, url.clone(), chat_body("hello", true).into()).await;
        assert_eq!(status, 200);
    }
    assert_eq!(between.connections(), connections);
    gateway.until_idle().await;
}

#[tokio::test]
async fn an_upstream_is_resolved_by_its_name() {
    let mock = Mock::start();
    let port = mock.address.port();
    let upstream = format!("base_url: \"http://localhost:{port}/v1\"");
    let gateway = Gateway::start(&single_upstream_config("", &upstream));
    let sent = chat_body("mock:echo", false).into();
    let (status, text) = send(&new_client(), gateway.url(CHAT), sent).await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains(&format!("localhost:{port}")), "{text}");
}

#[tokio::test]
async fn an_http_1_0_response_ends_with_the_connection() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    for stream in [false, true] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        let request = http1_post(CHAT, "", &chat_body("one two three", stream));
        connection
            .send(request.replace("HTTP/1.1", "HTTP/1.0"))
            .await;
        let response = connection.read_message().await.expect("a reply");
        assert_eq!(response.status(), 200);
        assert_eq!(response.header("transfer-encoding"), None);
        let text = response.text();
        assert!(text.contains("three"), "{text}");
        assert!(!stream || text.ends_with("data: [DONE]\n\n"), "{text}");
        assert!(connection.read_to_end().await.is_empty());
    }
}

#[tokio::test]
async fn a_connection_is_closed_when_the_client_asks_for_it() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    for stream in [false, true] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        let sent = chat_body("hello", stream);
        connection
            .send(http1_post(CHAT, "connection: close\r\n", &sent))
            .await;
        let response = connection.read_message().await.expect("a reply");
        assert_eq!(response.status(), 200);
        assert_eq!(response.header("connection"), Some("close"));
        assert!(connection.read_message().await.is_none());
    }
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let mut connection = Http1Connection::connect(gateway.address).await;
    for round in 0..10 {
        for (sent, status) in [
            (chat_body(&format!("round {round}"), false), 200),
            (chat_body(&format!("round {round}"), true), 200),
            ("{".to_owned(), 400),
            (chat_body("mock:error=503", true), 503),
            (chat_body("mock:stream_error=1", true), 200),
        ] {
            connection.send(http1_post(CHAT, "", &sent)).await;
            let response = connection.read_message().await.expect("a reply");
            assert_eq!(response.status(), status, "{}", response.text());
            assert_eq!(response.header("connection"), Some("keep-alive"));
        }
        connection
            .send("GET /nowhere HTTP/1.1\r\nhost: gateway\r\n\r\n")
            .await;
        assert_eq!(
            connection.read_message().await.expect("a reply").status(),
            404
        );
    }
}

#[tokio::test]
async fn pipelined_requests_are_served_in_order() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let mut connection = Http1Connection::connect(gateway.address).await;
    let prompts = ["mock:slow=20ms first", "second", "third"];
    let ahead: Vec<String> = prompts
        .iter()
        .enumerate()
        .map(|(number, prompt)| http1_post(CHAT, "", &chat_body(prompt, number == 1)))
        .collect();
    // Old clients end a body with an empty line that belongs to nothing.
    connection.send(ahead.join("\r\n")).await;
    for word in ["first", "second", "third"] {
        let response = connection.read_message().await.expect("a reply");
        assert_eq!(response.status(), 200, "{}", response.text());
        assert!(response.text().contains(word), "{}", response.text());
    }
}

#[tokio::test]
async fn garbage_closes_its_own_connection_only() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(200_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(2000));
    let garbage: [&[u8]; 10] = [
        b"\0\0\0\0\0\0\0\0\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n",
        b"hello, is anybody there?\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x80\xff HTTP/1.1\r\nhost: \xff\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost gateway\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage in place of frames, and more than enough of it",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in garbage {
        let mut connection = Http1Connection::connect(gateway.address).await;
        // The other side may stop reading in the middle of it.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut connection.stream, bytes).await;
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut connection.stream).await;
        let response = connection.read_until_closed().await;
        let text = String::from_utf8_lossy(&response);
        assert!(!text.starts_with("HTTP/1.1 2"), "{text}");
        assert!(!text.starts_with("HTTP/1.1 5"), "{text}");
    }
    let (status, _) = send(
        &new_client(),
        gateway.url(CHAT),
        chat_body("hi", false).into(),
    )
    .await;
    assert_eq!(status, 200);
    gateway.until_idle().await;
}

#[tokio::test]
async fn ambiguous_framing_cannot_smuggle_a_request() {
    let mock = Mock::start();
    let gateway = start_gateway(&mock, "");
    let hidden = http1_post(CHAT, "", &chat_body("mock:name=hidden", false));
    let first = chat_body("mock:name=first", false);
    let (length, both) = (first.len(), first.len() + hidden.len());
    let chunked = format!("{length:x}\r\n{first}\r\n0\r\n\r\n");
    let cut = length / 2;
    for (more, sent) in [
        (
            format!("content-length: {length}\r\ncontent-length: {both}\r\n"),
            &first,
        ),
        (
            format!("content-length: {both}\r\ncontent-length: {length}\r\n"),
            &first,
        ),
        (format!("content-length: {length}, {both}\r\n"), &first),
        (format!("content-length: +{length}\r\n"), &first),
        (format!("content-length: {length}x\r\n"), &first),
        (
            format!("content-length: {cut}\r\ntransfer-encoding: chunked\r\n"),
            &chunked,
        ),
        (
            format!("transfer-encoding: chunked\r\ncontent-length: {both}\r\n"),
            &chunked,
        ),
        (
            format!("content-length: {length}\r\ntransfer-encoding: identity\r\n"),
            &first,
        ),
        (
            format!("content-length: {length}\r\ntransfer-encoding: xchunked\r\n"),
            &first,
        ),
        (
            format!("content-length: {length}\r\ntransfer-encoding: chunked, gzip\r\n"),
            &first,
        ),
        (
            format!("content-length: {length}\r\ntransfer-encoding : chunked\r\n"),
            &first,
        ),
        (format!("content-length: -{length}\r\n"), &first),
        (format!("content-length: {length} {length}\r\n"), &first),
        (format!("content-length: 0x{length:x}\r\n"), &first),
        (
            format!("content-length: {length}\r\ntransfer-encoding:\r\n chunked\r\n"),
            &first,
        ),
        (
            format!("content-length: {length}\r\ntransfer-encoding: chunked, identity\r\n"),
            &first,
        ),
        (
            "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n".to_owned(),
            &first,
        ),
        (
            "transfer-encoding: chunked\r\n".to_owned(),
            &chunked.replacen("\r\n", ";\r\n\r\n", 1),
        ),
    ] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        connection
            .send(http1_post_head(CHAT, &more) + sent + &hidden)
            .await;
        let response = connection.read_until_closed().await;
        let text = String::from_utf8_lossy(&response);
        let replies = text.matches("HTTP/1.1 ").count();
        assert!(replies <= 1, "{more}: {text}");
        assert_eq!(mock.seen("hidden", "started").await, 0, "{more}: {text}");
        let by_chunks = sent == &chunked;
        assert!(
            by_chunks || !text.starts_with("HTTP/1.1 2"),
            "{more}: {text}"
        );
    }
    gateway.until_idle().await;
}

#[tokio::test]
async fn a_client_that_does_not_send_its_header_is_disconnected() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = config.replace("server: {", "server: {timeouts: {header: 200ms}, ");
    let gateway = Gateway::start(&config);
    for beginning in [
        "POST /v1/chat/completions HT",
        "POST / HTTP/1.1\r\nhost: x\r\n",
    ] {
        let mut line = std::net::TcpStream::connect(gateway.address).expect("a connection");
        std::io::Write::write_all(&mut line, beginning.as_bytes()).expect("it is sent");
        line.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let mut rest = Vec::new();
        // The end of the connection, not our own patience, must end this.
        let read = std::io::Read::read_to_end(&mut line, &mut rest);
        assert!(
            !matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
            "{beginning:?}: {read:?}"
        );
    }
}

#[tokio::test]
async fn a_header_that_is_too_long_is_refused_over_http2() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        let (path, body) = request(format, &format!("same-{format}"), "hello", false);
        let asked = http2().post(gateway.url(&path)).bearer_auth(KEY);
        let asked = asked.header("x-long", "a".repeat(70_000)).json(&body);
        let response = asked.send().await.expect("an answer");
        assert_eq!(response.status(), 431, "{format}");
        let message: Value = response.json().await.expect("an error in the format");
        assert!(message["error"].is_object(), "{format}: {message}");
    }
}

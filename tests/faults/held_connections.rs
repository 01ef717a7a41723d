//! Clients that open connections and send no request: each is closed in time, and all of them together are limited.

use std::time::Duration;

use omniglot_test_support::{
    CertificateAuthority, Gateway, Http1Connection, KEY, Mock, TIMEOUT, every_format_config,
    new_client, request, wait_until,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::held_handshakes::client_hello;

const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const EMPTY_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The frame announces 100 bytes of headers, of which three come.
const PARTIAL_HEADERS: &[u8] = &[0, 0, 100, 1, 4, 0, 0, 0, 1, 0x82, 0x86, 0x84];

/// pingora itself would end a handshake after a minute.
const SHORTER_THAN_PINGORAS: Duration = Duration::from_secs(50);

fn start(mock: &Mock, server: &str) -> Gateway {
    let config = every_format_config(mock.address);
    Gateway::start(&config.replace("server: {", &format!("server: {{{server}, ")))
}

async fn connect(address: std::net::SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("a connection")
}

/// Sends this and nothing more, and waits until the other side has closed the connection.
async fn assert_closed(mut stream: TcpStream, sent: &[u8]) {
    stream.write_all(sent).await.expect("it is sent");
    let mut said = Vec::new();
    let closed = timeout(TIMEOUT, stream.read_to_end(&mut said)).await;
    // Closed or reset, but over.
    assert!(closed.is_ok(), "still open after {sent:?}");
}

async fn status(gateway: &Gateway) -> Option<u16> {
    let (path, body) = request("chat", "same-chat", "one two", false);
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let answer = asked.send().await.ok()?;
    Some(answer.status().as_u16())
}

#[tokio::test]
async fn a_connection_of_http2_without_a_request_is_closed() {
    let mock = Mock::start();
    let gateway = start(&mock, "timeouts: {header: 300ms}");
    for length in 14..=HTTP2_PREFACE.len() {
        assert_closed(connect(gateway.address).await, &HTTP2_PREFACE[..length]).await;
    }
    let partial = [HTTP2_PREFACE, EMPTY_SETTINGS, PARTIAL_HEADERS].concat();
    assert_closed(connect(gateway.address).await, &partial).await;
    assert_eq!(status(&gateway).await, Some(200));
}

#[tokio::test]
async fn a_connection_that_does_not_finish_its_tls_handshake_is_closed() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    let (cert, key) = authority.issue_files("localhost");
    let listen = format!(
        "listen: {{addr: LISTEN, tls: {{cert: {}, key: {}}}}}, timeouts: {{header: 300ms}}",
        cert.display(),
        key.display()
    );
    let config = every_format_config(mock.address).replace("listen: LISTEN", &listen);
    let gateway = Gateway::start(&config);
    assert_closed(connect(gateway.address).await, b"").await;
    // The record announces 512 bytes, and the message in it 508.
    let hello = [&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0; 100]].concat();
    for length in [1, 5, hello.len()] {
        let closed = assert_closed(connect(gateway.address).await, &hello[..length]);
        let in_time = timeout(SHORTER_THAN_PINGORAS, closed).await;
        assert!(in_time.is_ok(), "still open after {length} bytes");
    }
    let hello = client_hello(&authority);
    let closed = assert_closed(connect(gateway.address).await, &hello);
    let in_time = timeout(SHORTER_THAN_PINGORAS, closed).await;
    assert!(in_time.is_ok(), "still open after the first message");
}

#[tokio::test]
async fn a_slow_header_at_the_admin_port_is_closed() {
    let mock = Mock::start();
    let gateway = start(&mock, "timeouts: {header: 300ms}");
    let url = gateway.admin_url("/healthz");
    let address = url.split('/').nth(2).expect("an address");
    for sent in [&b""[..], b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a:"] {
        let address = address.parse().expect("an address");
        assert_closed(connect(address).await, sent).await;
    }
}

#[tokio::test]
async fn clients_that_keep_their_connections_do_not_lock_the_admin_port() {
    let mock = Mock::start();
    let gateway = start(&mock, "timeouts: {header: 300s}");
    let url = gateway.admin_url("/healthz");
    let address = url.split('/').nth(2).expect("an address");
    let address = address.parse().expect("an address");
    let mut held = Vec::new();
    for _ in 0..40 {
        let mut stream = connect(address).await;
        let request = b"GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n";
        stream.write_all(request).await.expect("it is sent");
        let answered = timeout(TIMEOUT, stream.read_u8()).await;
        answered.expect("in time").expect("an answer");
        held.push(stream);
    }
}

#[tokio::test]
async fn a_client_that_reads_no_response_of_the_admin_port_is_closed() {
    let mock = Mock::start();
    let gateway = start(&mock, "timeouts: {write_idle: 300ms}");
    let url = gateway.admin_url("/metrics");
    let address = url.split('/').nth(2).expect("an address");
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let connected = socket.connect(address.parse().expect("an address")).await;
    let mut stream = connected.expect("a connection");
    let asking = async {
        // It asks on and on, until nobody listens any more.
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n";
        while stream.write_all(request).await.is_ok() {}
    };
    let ended = timeout(TIMEOUT, asking).await;
    assert!(ended.is_ok(), "it is still asking");
}

/// Opens a connection, sends a request without a body, and waits for the first byte of its response.
async fn hold(gateway: &Gateway, path: &str, key: &str) -> TcpStream {
    let mut stream = connect(gateway.address).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{key}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    // Until it is served, it does not count.
    assert!(stream.read_u8().await.is_ok(), "{path}");
    stream
}

const LIMITS: [&str; 2] = ["max_connections: 3", "max_connections_per_address: 3"];

/// A connection with a stream of a right key that does not end.
async fn hold_stream(gateway: &Gateway) -> TcpStream {
    let body = r#"{"model":"same-chat","stream":true,"messages":[{"role":"user","content":"one two mock:wait=go"}]}"#;
    let mut stream = connect(gateway.address).await;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it is sent");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.expect("a response");
    assert_eq!(&begin, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn connections_end_at_a_limit_and_leave_room_for_the_admin_port() {
    let mock = Mock::start();
    for limit in LIMITS {
        let gateway = start(&mock, &format!("timeouts: {{header: 1h}}, {limit}"));
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(hold_stream(&gateway).await);
        }
        assert_closed(connect(gateway.address).await, b"").await;
        let health = new_client().get(gateway.admin_url("/healthz")).send().await;
        assert_eq!(health.expect("an answer").status(), 200, "{limit}");
        drop(held);
        wait_until("a request is served again", async || {
            status(&gateway).await == Some(200)
        })
        .await;
    }
}

#[tokio::test]
async fn idle_connections_of_right_keys_make_room_for_others() {
    let mock = Mock::start();
    for limit in LIMITS {
        let gateway = start(&mock, &format!("timeouts: {{header: 1h}}, {limit}"));
        let key = format!("authorization: Bearer {KEY}\r\n");
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(hold(&gateway, "/v1/models", &key).await);
        }
        assert_eq!(status(&gateway).await, Some(200), "{limit}");
        // Which of them became idle first, only the gateway knows.
        let mut reading = JoinSet::new();
        for mut stream in held {
            reading.spawn(async move { stream.read_to_end(&mut Vec::new()).await });
        }
        let closed = timeout(TIMEOUT, reading.join_next()).await;
        assert!(closed.is_ok(), "{limit}: all are still open");
    }
}

#[tokio::test]
async fn busy_connections_without_a_right_key_make_room_for_others() {
    let mock = Mock::start();
    for limit in LIMITS {
        let gateway = start(&mock, &format!("timeouts: {{header: 1h}}, {limit}"));
        let mut held = Vec::new();
        for _ in 0..3 {
            // The body never comes.
            let mut stream = connect(gateway.address).await;
            let request =
                "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: 100\r\n\r\n";
            stream
                .write_all(request.as_bytes())
                .await
                .expect("it is sent");
            // Until it is served, it does not count.
            assert!(stream.read_u8().await.is_ok(), "{limit}");
            held.push(stream);
        }
        for _ in 0..5 {
            assert_eq!(status(&gateway).await, Some(200), "{limit}");
        }
    }
}

/// A connection with a right key that an upload keeps busy: its body never comes.
async fn hold_upload(gateway: &Gateway, in_flight: usize) -> TcpStream {
    let key = format!("authorization: Bearer {KEY}\r\ncontent-length: 100");
    let mut stream = connect(gateway.address).await;
    let request = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\n{key}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let expected = format!("omniglot_requests_in_flight {in_flight}");
    wait_until("it is served", async || {
        gateway.metric("omniglot_requests_in_flight").await == [expected.as_str()]
    })
    .await;
    stream
}

/// A client decides by itself how long its body takes: it does not shut others out by that, and what an upstream answers
/// goes on.
#[tokio::test]
async fn busy_connections_of_one_key_make_room_unless_an_upstream_answers() {
    for limit in LIMITS {
        let mock = Mock::start();
        let gateway = start(&mock, &format!("timeouts: {{header: 1h}}, {limit}"));
        let mut answered = hold_stream(&gateway).await;
        let mut held = [
            hold_upload(&gateway, 2).await,
            hold_upload(&gateway, 3).await,
        ];
        assert_eq!(status(&gateway).await, Some(200), "{limit}");
        let mut rest = Vec::new();
        let closed = timeout(TIMEOUT, held[0].read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{limit}: it is still open");
        mock.signal("go", 1000).await;
        let mut rest = String::new();
        let read = timeout(TIMEOUT, async {
            while !rest.contains("[DONE]") {
                let mut bytes = [0; 1024];
                let count = answered.read(&mut bytes).await.expect("more of the stream");
                assert!(count > 0, "{limit}: the stream was cut: {rest}");
                rest.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        assert!(read.await.is_ok(), "{limit}: {rest}");
    }
}

#[tokio::test]
async fn connections_without_a_right_key_make_room_for_others() {
    let mock = Mock::start();
    for limit in LIMITS {
        let gateway = start(&mock, &format!("timeouts: {{header: 1h}}, {limit}"));
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(hold(&gateway, "/api/models", "").await);
        }
        // Each needs a connection of its own, and the longest idle one ends.
        for _ in 0..5 {
            assert_eq!(status(&gateway).await, Some(200), "{limit}");
        }
        let mut rest = Vec::new();
        let closed = timeout(TIMEOUT, held[0].read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{limit}: it is still open");
        // One that sends nothing at all makes room too.
        let mut silent = Vec::new();
        for _ in 0..3 {
            silent.push(connect(gateway.address).await);
        }
        // They may be accepted after the one that asks, and end it before its header has come.
        wait_until("there is room", async || {
            status(&gateway).await == Some(200)
        })
        .await;
    }
}

#[tokio::test]
async fn a_wrong_key_ends_its_connection_unless_a_right_one_came_before() {
    let mock = Mock::start();
    let gateway = start(&mock, "timeouts: {header: 1h}");
    let models = "GET /v1/models HTTP/1.1\r\nhost: x\r\n";
    for key in ["", "authorization: Bearer wrong\r\n"] {
        let mut stream = connect(gateway.address).await;
        let request = format!("{models}{key}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut said = String::new();
        let closed = timeout(TIMEOUT, stream.read_to_string(&mut said)).await;
        closed.expect("it ends").expect("text");
        let said = said.to_ascii_lowercase();
        assert!(said.starts_with("http/1.1 401"), "{said}");
        assert!(said.contains("connection: close"), "{said}");
    }
    let mut connection = Http1Connection::connect(gateway.address).await;
    for (key, status) in [(KEY, 200), ("wrong", 401), (KEY, 200)] {
        let request = format!("{models}authorization: Bearer {key}\r\n\r\n");
        connection.send(request).await;
        let answer = connection.read_message().await.expect("an answer");
        assert_eq!(answer.status(), status, "{key}");
    }
}

//! Clients that open connections to a TLS listener and do not finish their handshake: they keep nobody out.

use omniglot_test_support::{
    CertificateAuthority, Gateway, KEY, Mock, TIMEOUT, every_format_config, request, wait_until,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::slow_headers::{secure, tls_config};

/// How many connections may be in their handshake while all places are those of right keys.
const WAITING_HANDSHAKES: usize = 16;

fn start(mock: &Mock, authority: &CertificateAuthority, server: &str) -> Gateway {
    let (cert, key) = authority.issue_files("localhost");
    let listen = format!(
        "listen: {{addr: LISTEN, tls: {{cert: {}, key: {}}}}}, timeouts: {{header: 1h}}, {server}",
        cert.display(),
        key.display()
    );
    Gateway::start(&every_format_config(mock.address).replace("listen: LISTEN", &listen))
}

/// The first message of a handshake.
pub fn client_hello(authority: &CertificateAuthority) -> Vec<u8> {
    let name = "localhost".try_into().expect("a name");
    let config = tls_config(authority, "http/1.1");
    let mut client = rustls::ClientConnection::new(config, name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("a message");
    hello
}

/// Opens connections one after the other that say this and nothing more; each ends in the set when it is closed.
async fn fall_silent(gateway: &Gateway, sent: &[u8], count: usize) -> JoinSet<()> {
    let mut silent = JoinSet::new();
    for _ in 0..count {
        let connected = TcpStream::connect(gateway.address).await;
        let mut stream = connected.expect("a connection");
        let _ = stream.write_all(sent).await;
        silent.spawn(async move {
            // Closed or reset, but over.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
    }
    silent
}

async fn until_closed(silent: &mut JoinSet<()>, count: usize) {
    for number in 1..=count {
        let closed = timeout(TIMEOUT, silent.join_next()).await;
        assert!(closed.is_ok(), "only {} are closed", number - 1);
    }
}

/// Sends a request, or the rest of one, and reads the status of its response, and the whole of it.
async fn ask(stream: &mut TlsStream<TcpStream>, sent: &str) -> u16 {
    stream.write_all(sent.as_bytes()).await.expect("it is sent");
    let mut text = String::new();
    let answered = timeout(TIMEOUT, async {
        while !is_whole(&text) {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).await.expect("more of it");
            assert!(count > 0, "the connection was closed: {text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
    answered.await.expect("a response in time");
    let status = text.split(' ').nth(1).expect("a status line");
    status.parse().expect("a status")
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next());
    let length: usize = length.expect("a length").parse().expect("a number");
    body.len() >= length
}

fn models() -> String {
    format!("GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n")
}

/// Opens connections with a right key that wait for their next request.
async fn hold_idle(
    gateway: &Gateway,
    authority: &CertificateAuthority,
    count: usize,
) -> Vec<TlsStream<TcpStream>> {
    let mut held = Vec::new();
    for _ in 0..count {
        let mut stream = secure(gateway, authority, "http/1.1").await;
        assert_eq!(ask(&mut stream, &models()).await, 200);
        held.push(stream);
    }
    held
}

async fn status(gateway: &Gateway, authority: &CertificateAuthority) -> u16 {
    let (path, body) = request("chat", "same-chat", "one two", false);
    let url = format!("https://localhost:{}{path}", gateway.address.port());
    let client = authority.client().build().expect("a client");
    let asked = client.post(url).bearer_auth(KEY).json(&body).send().await;
    asked.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn silent_handshakes_make_room_for_one_another_and_not_connections_of_right_keys() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    for sent in [Vec::new(), vec![22, 3, 1], client_hello(&authority)] {
        let gateway = start(&mock, &authority, "max_connections: 20");
        let mut idle = hold_idle(&gateway, &authority, 3).await;
        let (path, body) = request("chat", "same-chat", "one two", false);
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut uploads = Vec::new();
        for number in 1..=2 {
            let mut stream = secure(&gateway, &authority, "http/1.1").await;
            stream.write_all(head.as_bytes()).await.expect("it is sent");
            let expected = format!("omniglot_requests_in_flight {number}");
            wait_until("it is served", async || {
                gateway.metric("omniglot_requests_in_flight").await == [expected.as_str()]
            })
            .await;
            uploads.push(stream);
        }
        let mut silent = fall_silent(&gateway, &sent, 25).await;
        until_closed(&mut silent, 10).await;
        assert_eq!(status(&gateway, &authority).await, 200);
        for stream in &mut uploads {
            assert_eq!(ask(stream, &body).await, 200, "{sent:?}");
        }
        for stream in &mut idle {
            assert_eq!(ask(stream, &models()).await, 200, "{sent:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_of_a_right_key_makes_room_for_a_handshake_that_has_finished() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    for limit in ["max_connections: 3", "max_connections_per_address: 3"] {
        let gateway = start(&mock, &authority, limit);
        let mut idle = hold_idle(&gateway, &authority, 3).await;
        let mut silent = fall_silent(&gateway, b"", WAITING_HANDSHAKES + 4).await;
        until_closed(&mut silent, 4).await;
        for stream in &mut idle {
            assert_eq!(ask(stream, &models()).await, 200, "{limit}");
        }
        assert_eq!(status(&gateway, &authority).await, 200, "{limit}");
        // The one that has waited for longest.
        let mut rest = Vec::new();
        let closed = timeout(TIMEOUT, idle[0].read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{limit}: it is still open");
        for stream in &mut idle[1..] {
            assert_eq!(ask(stream, &models()).await, 200, "{limit}");
        }
    }
}

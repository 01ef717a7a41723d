//! Clients that send their header byte by byte, or none: each byte is in time, the whole header is too late.

use std::sync::Arc;

use omniglot_test_support::{
    CertificateAuthority, Gateway, KEY, Mock, TIMEOUT, every_format_config, new_client, request,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::faulty_upstream::SEND_INTERVAL;

/// Sends a header that has no end, until the other side has had enough; returns what it said.
async fn drip(stream: impl AsyncRead + AsyncWrite, begin: &str) -> Vec<u8> {
    let (mut reading, mut writing) = split(stream);
    let endless = async {
        let mut sent = writing.write_all(begin.as_bytes()).await;
        while sent.is_ok() {
            sleep(SEND_INTERVAL).await;
            sent = writing.write_all(b"a").await;
            sent = sent.and(writing.flush().await);
        }
        std::future::pending::<()>().await;
    };
    let mut text = Vec::new();
    let gone = async {
        // Closed or reset, but over.
        let _ = reading.read_to_end(&mut text).await;
    };
    let first = async {
        tokio::select! {
            () = gone => {}
            () = endless => {}
        }
    };
    timeout(TIMEOUT, first).await.expect("it is let go");
    text
}

/// The TLS of a client that trusts an authority, and speaks one protocol.
pub fn tls_config(authority: &CertificateAuthority, protocol: &str) -> Arc<rustls::ClientConfig> {
    new_client();
    let mut roots = rustls::RootCertStore::empty();
    let trusted = CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("a certificate");
    roots.add(trusted).expect("an authority");
    let config = rustls::ClientConfig::builder().with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    Arc::new(config)
}

/// Connects over TLS.
pub async fn secure(
    gateway: &Gateway,
    authority: &CertificateAuthority,
    protocol: &str,
) -> TlsStream<TcpStream> {
    let config = tls_config(authority, protocol);
    let stream = TcpStream::connect(gateway.address)
        .await
        .expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    let connecting = TlsConnector::from(config).connect(name, stream);
    connecting.await.expect("TLS")
}

const BEGINNINGS: [&str; 4] = [
    "",
    "P",
    "POST /v1/chat/comple",
    "POST / HTTP/1.1\r\nhost: x\r\nx-a: ",
];

#[tokio::test]
async fn a_slow_header_times_out_and_a_long_stream_does_not() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = config.replace("server: {", "server: {timeouts: {header: 300ms}, ");
    let gateway = Gateway::start(&config);
    let (path, body) = request(
        "chat",
        "same-chat",
        "one two mock:wait=go mock:name=lasts",
        true,
    );
    let asked = new_client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let lasting = asked.send().await.expect("a stream begins");
    mock.until_seen("lasts", "waiting", 1).await;
    for begin in BEGINNINGS {
        let stream = TcpStream::connect(gateway.address)
            .await
            .expect("a connection");
        let said = drip(stream, begin).await;
        assert!(
            said.is_empty(),
            "{begin:?}: {}",
            String::from_utf8_lossy(&said)
        );
    }
    // All of that took longer than a header may.
    mock.signal("go", 20).await;
    let text = lasting.text().await.expect("the rest");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    gateway.until_idle().await;
}

#[tokio::test]
async fn a_slow_header_times_out_over_tls_too() {
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
    let lasting = authority.client().build().expect("a client");
    let prompt = "one two mock:wait=go mock:name=lasts";
    let (path, body) = request("chat", "same-chat", prompt, true);
    let url = format!("https://localhost:{}{path}", gateway.address.port());
    let asked = lasting.post(url).bearer_auth(KEY).json(&body);
    let lasting = asked.send().await.expect("a stream begins");
    assert_eq!(lasting.version(), http::Version::HTTP_2);
    mock.until_seen("lasts", "waiting", 1).await;
    for begin in BEGINNINGS {
        drip(secure(&gateway, &authority, "http/1.1").await, begin).await;
    }
    // Agrees to HTTP/2 and says nothing.
    let mut silent = secure(&gateway, &authority, "h2").await;
    let mut said = Vec::new();
    let gone = timeout(TIMEOUT, silent.read_to_end(&mut said)).await;
    // Closed or reset, but over.
    let _ = gone.expect("it is let go");
    mock.signal("go", 20).await;
    let text = lasting.text().await.expect("the rest");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    gateway.until_idle().await;
}

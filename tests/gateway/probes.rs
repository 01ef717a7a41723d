//! Probes of load balancers, which open a connection and close it, and the log.

use std::net::SocketAddr;

use omniglot_test_support::{
    CertificateAuthority, Gateway, KEY, Mock, Stderr, every_format_config, request,
};
use tokio::net::TcpStream;

/// Opens connections and closes them, by their end and by a reset.
async fn probe(address: SocketAddr) {
    for number in 0..6 {
        let stream = TcpStream::connect(address).await.expect("it is open");
        if number % 2 == 0 {
            stream.set_zero_linger().expect("a socket option");
        }
        drop(stream);
    }
}

#[tokio::test]
async fn probes_are_no_errors_in_the_log() {
    let mock = Mock::start();
    let authority = CertificateAuthority::new();
    let (cert, key) = authority.issue_files("127.0.0.1");
    let (cert, key) = (cert.display(), key.display());
    let tls = format!("{{addr: LISTEN, tls: {{cert: {cert}, key: {key}}}}}");
    for listen in ["LISTEN", &tls] {
        let stderr = Stderr::new();
        let config = every_format_config(mock.address).replace("LISTEN", listen);
        let mut gateway = Gateway::start_with(&config, |command| stderr.attach(command));
        probe(gateway.address).await;
        probe(gateway.admin).await;
        let client = authority.client().build().expect("a client");
        let (path, body) = request("chat", "same-chat", "hello", false);
        let scheme = if listen == "LISTEN" { "http" } else { "https" };
        let url = gateway
            .url(&path)
            .replace("http://", &format!("{scheme}://"));
        let response = client.post(url).bearer_auth(KEY).json(&body).send().await;
        assert_eq!(response.expect("an answer").status(), 200);
        drop(client);
        gateway.process.signal("TERM");
        assert_eq!(gateway.process.wait().code(), Some(0));
        let text = stderr.text();
        let lines = text
            .lines()
            .filter(|line| line.contains("ERROR") || line.contains("WARN"));
        assert_eq!(lines.collect::<Vec<_>>(), [""; 0], "{listen}");
    }
}

//! A proxy that opens tunnels with CONNECT, all of them to one server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// An HTTP proxy as tests need it.
pub struct ConnectProxy {
    /// The address that it listens on.
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ConnectProxy {
    /// Starts a proxy whose tunnels lead to a server, whatever name they are asked for.
    pub async fn start(server: SocketAddr) -> ConnectProxy {
        ConnectProxy::answering("HTTP/1.1 200 Connection established\r\n\r\n", server).await
    }

    /// Starts a proxy with another answer; there is no tunnel unless it is a 200.
    pub async fn answering(answer: &'static str, server: SocketAddr) -> ConnectProxy {
        ConnectProxy::start_with(answer, server, server).await
    }

    /// Starts a proxy whose tunnels to port 443 lead to one server, and all others to another.
    pub async fn start_by_port(tls: SocketAddr, plain: SocketAddr) -> ConnectProxy {
        let answer = "HTTP/1.1 200 Connection established\r\n\r\n";
        ConnectProxy::start_with(answer, tls, plain).await
    }

    async fn start_with(answer: &'static str, tls: SocketAddr, plain: SocketAddr) -> ConnectProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = requests.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(tunnel(stream, answer, (tls, plain), noted.clone()));
            }
        });
        ConnectProxy { address, requests }
    }

    /// Returns the header of every request that it was sent.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }
}

async fn tunnel(
    mut outside: TcpStream,
    answer: &'static str,
    (tls, plain): (SocketAddr, SocketAddr),
    noted: Arc<Mutex<Vec<String>>>,
) {
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        match outside.read_buf(&mut header).await {
            Ok(1..) => {}
            _ => return,
        }
    }
    let header = String::from_utf8_lossy(&header).into_owned();
    let server = match header.contains(":443 HTTP/") {
        true => tls,
        false => plain,
    };
    noted.lock().expect("no panic").push(header);
    let sent = outside.write_all(answer.as_bytes()).await;
    if sent.is_err() || !answer.starts_with("HTTP/1.1 200") {
        return;
    }
    let mut inside = TcpStream::connect(server).await.expect("the server");
    // Either side may close the connection.
    let _ = copy_bidirectional(&mut outside, &mut inside).await;
}

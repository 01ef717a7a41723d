//! HTTP/1.1 on the level of bytes, for messages that no HTTP library sends or returns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::config::KEY;
use crate::wait::TIMEOUT;

/// A connection on either side of HTTP/1.1; bytes read beyond a message are kept for the next.
pub struct Http1Connection {
    /// The socket.
    pub stream: TcpStream,
    unread: Vec<u8>,
}

/// A request or a response.
#[derive(Debug)]
pub struct Http1Message {
    /// The first line: a request line or a status line.
    pub line: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
}

impl Http1Message {
    /// Returns the status code of a response.
    pub fn status(&self) -> u16 {
        let word = self.line.split(' ').nth(1).expect("a status line");
        word.parse().expect("a status")
    }

    /// Returns the first header of a name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Http1Connection {
    /// Takes over an open socket.
    pub fn new(stream: TcpStream) -> Http1Connection {
        let unread = Vec::new();
        Http1Connection { stream, unread }
    }

    /// Connects to an address.
    pub async fn connect(address: SocketAddr) -> Http1Connection {
        Http1Connection::new(TcpStream::connect(address).await.expect("a connection"))
    }

    /// Writes bytes.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sending = self.stream.write_all(bytes.as_ref());
        let sent = timeout(TIMEOUT, sending).await.expect("no hang");
        sent.expect("the other side reads on");
    }

    /// Reads more bytes; `false`: the other side has closed.
    async fn read(&mut self) -> bool {
        let reading = self.stream.read_buf(&mut self.unread);
        let read = timeout(TIMEOUT, reading).await.expect("no hang");
        read.expect("the connection is not reset") > 0
    }

    /// Reads the next head; `None`: the other side has closed.
    pub async fn read_head(&mut self) -> Option<Http1Message> {
        loop {
            if let Some(at) = find_bytes(&self.unread, b"\r\n\r\n") {
                let head: Vec<u8> = self.unread.drain(..at + 4).collect();
                return Some(parse_head(&head));
            }
            if !self.read().await {
                assert!(self.unread.is_empty(), "half a head: {:?}", self.unread);
                return None;
            }
        }
    }

    /// Reads the next message with its body, by its length, in chunks, or up to the end.
    pub async fn read_message(&mut self) -> Option<Http1Message> {
        let mut message = self.read_head().await?;
        let request = message.line.ends_with("HTTP/1.1");
        if message.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.read_chunk().await {
                message.body.extend(chunk);
            }
        } else if let Some(length) = message.header("content-length") {
            let length = length.parse().expect("a length");
            message.body = self.read_exact(length).await;
        } else if !request {
            message.body = self.read_to_end().await;
        }
        Some(message)
    }

    /// Reads the next chunk of a chunked body; `None`: that was the last one.
    pub async fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let at = loop {
            match find_bytes(&self.unread, b"\r\n") {
                Some(at) => break at,
                None => assert!(self.read().await, "closed in the middle of a chunked body"),
            }
        };
        let line: Vec<u8> = self.unread.drain(..at + 2).collect();
        let size = std::str::from_utf8(&line[..at]).expect("a chunk size");
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        let chunk = self.read_exact(size).await;
        assert_eq!(self.read_exact(2).await, b"\r\n");
        (size > 0).then_some(chunk)
    }

    /// Reads exactly `length` bytes.
    pub async fn read_exact(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.read().await, "closed in the middle of a body");
        }
        self.unread.drain(..length).collect()
    }

    /// Reads up to the end of the connection.
    pub async fn read_to_end(&mut self) -> Vec<u8> {
        while self.read().await {}
        std::mem::take(&mut self.unread)
    }

    /// Reads until the connection is closed or reset.
    pub async fn read_until_closed(&mut self) -> Vec<u8> {
        loop {
            let reading = self.stream.read_buf(&mut self.unread);
            match timeout(TIMEOUT, reading).await.expect("no hang") {
                Ok(0) | Err(_) => return std::mem::take(&mut self.unread),
                Ok(_) => {}
            }
        }
    }
}

/// Returns the position of the first occurrence.
pub fn find_bytes(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}

fn parse_head(head: &[u8]) -> Http1Message {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_end().split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let body = Vec::new();
    Http1Message {
        line,
        headers,
        body,
    }
}

/// Returns the head of a POST with [`KEY`]; `more` are further header lines, each with its end.
pub fn http1_post_head(path: &str, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\n{more}\r\n"
    )
}

/// Returns a whole POST with a content-length.
pub fn http1_post(path: &str, more: &str, body: &str) -> String {
    let more = format!("{more}content-length: {}\r\n", body.len());
    http1_post_head(path, &more) + body
}

/// An upstream whose connections are served by a function of the test.
pub struct Http1Upstream {
    /// The address that it listens on.
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Http1Upstream {
    /// Starts an upstream; the function is given each connection and its number.
    pub async fn start<F, D>(serve: F) -> Http1Upstream
    where
        F: Fn(Http1Connection, usize) -> D + Send + 'static,
        D: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::AcqRel);
                tokio::spawn(serve(Http1Connection::new(stream), number));
            }
        });
        Http1Upstream {
            address,
            connections,
        }
    }

    /// Counts the connections that have been made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    /// Returns its base URL as a setting of a config.
    pub fn base_url(&self) -> String {
        format!("base_url: \"http://{}/v1\"", self.address)
    }
}

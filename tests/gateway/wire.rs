//! HTTP/1.1 byte by byte, for what no HTTP library sends or lets one see.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::stage::{KEY, PATIENCE};

/// A head or a whole message, and what has been read beyond it is kept for the next.
pub struct Wire {
    pub stream: TcpStream,
    unread: Vec<u8>,
}

#[derive(Debug)]
pub struct Message {
    /// The first line: a request line or a status line.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn status(&self) -> u16 {
        let word = self.line.split(' ').nth(1).expect("a status line");
        word.parse().expect("a status")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Wire {
    pub fn new(stream: TcpStream) -> Wire {
        let unread = Vec::new();
        Wire { stream, unread }
    }

    pub async fn to(address: SocketAddr) -> Wire {
        Wire::new(TcpStream::connect(address).await.expect("a connection"))
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sending = self.stream.write_all(bytes.as_ref());
        let sent = timeout(PATIENCE, sending).await.expect("no hang");
        sent.expect("the other side reads on");
    }

    /// More bytes; `false`: there are no more.
    async fn read(&mut self) -> bool {
        let reading = self.stream.read_buf(&mut self.unread);
        let read = timeout(PATIENCE, reading).await.expect("no hang");
        read.expect("the connection is not reset") > 0
    }

    /// The next head; `None`: the other side has closed.
    pub async fn head(&mut self) -> Option<Message> {
        loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                let head: Vec<u8> = self.unread.drain(..at + 4).collect();
                return Some(parse_head(&head));
            }
            if !self.read().await {
                assert!(self.unread.is_empty(), "half a head: {:?}", self.unread);
                return None;
            }
        }
    }

    /// The next message with its body, by its length, in chunks, or up to the end.
    pub async fn message(&mut self) -> Option<Message> {
        let mut message = self.head().await?;
        let request = message.line.ends_with("HTTP/1.1");
        if message.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                message.body.extend(chunk);
            }
        } else if let Some(length) = message.header("content-length") {
            let length = length.parse().expect("a length");
            message.body = self.exactly(length).await;
        } else if !request {
            message.body = self.rest().await;
        }
        Some(message)
    }

    /// The next chunk of a chunked body; `None`: that was the last one.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        let at = loop {
            match find(&self.unread, b"\r\n") {
                Some(at) => break at,
                None => assert!(self.read().await, "closed in the middle of a chunked body"),
            }
        };
        let line: Vec<u8> = self.unread.drain(..at + 2).collect();
        let size = std::str::from_utf8(&line[..at]).expect("a chunk size");
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        let chunk = self.exactly(size).await;
        assert_eq!(self.exactly(2).await, b"\r\n");
        (size > 0).then_some(chunk)
    }

    /// So many bytes.
    pub async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.read().await, "closed in the middle of a body");
        }
        self.unread.drain(..length).collect()
    }

    /// Everything up to the end.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.read().await {}
        std::mem::take(&mut self.unread)
    }

    /// What comes until the connection is over, however it ends.
    pub async fn whatever(&mut self) -> Vec<u8> {
        loop {
            let reading = self.stream.read_buf(&mut self.unread);
            match timeout(PATIENCE, reading).await.expect("no hang") {
                Ok(0) | Err(_) => return std::mem::take(&mut self.unread),
                Ok(_) => {}
            }
        }
    }
}

pub fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn parse_head(head: &[u8]) -> Message {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_end().split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let body = Vec::new();
    Message {
        line,
        headers,
        body,
    }
}

/// The head of a POST with a key; `more` are further header lines, each with its end.
pub fn post(path: &str, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\n{more}\r\n"
    )
}

/// A whole POST with a content-length.
pub fn post_with(path: &str, more: &str, body: &str) -> String {
    let more = format!("{more}content-length: {}\r\n", body.len());
    post(path, &more) + body
}

/// An upstream that does with each connection what the test says.
pub struct Upstream {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Upstream {
    pub async fn start<F, D>(serve: F) -> Upstream
    where
        F: Fn(Wire, usize) -> D + Send + 'static,
        D: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::AcqRel);
                tokio::spawn(serve(Wire::new(stream), number));
            }
        });
        Upstream {
            address,
            connections,
        }
    }

    /// How many connections have been made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    /// Its base URL, as the config says it.
    pub fn base(&self) -> String {
        format!("base_url: \"http://{}/v1\"", self.address)
    }
}

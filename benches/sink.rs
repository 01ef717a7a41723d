//! An upstream of minimal cost: it sends the same response to every request and parses none of them.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const RESPONSE_BODY: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Yes."}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1,"totalTokenCount":10}}"#;

/// A server in this process, which stops when it is dropped.
pub struct Sink {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Sink {
    /// Starts an upstream of the native format.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Ok(Self { address, task })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let length = RESPONSE_BODY.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{RESPONSE_BODY}"
    );
    let mut buffer = vec![0; 1 << 18];
    loop {
        let mut received = 0;
        let mut request_length = usize::MAX;
        while received < request_length {
            // Once the head is complete, the body overwrites the buffer, because nothing parses it.
            let offset = if request_length == usize::MAX {
                received
            } else {
                0
            };
            let count = stream.read(&mut buffer[offset..]).await?;
            ensure!(count > 0, "connection closed");
            received += count;
            if request_length == usize::MAX
                && let Some(end) = memmem::find(&buffer[..received], b"\r\n\r\n")
            {
                request_length = end + 4 + content_length(&buffer[..end])?;
            }
        }
        stream.write_all(response.as_bytes()).await?;
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    let head = str::from_utf8(head)?.to_ascii_lowercase();
    let (_, length) = head
        .split_once("content-length:")
        .context("no content-length")?;
    let length = length.lines().next().unwrap_or_default();
    Ok(length.trim().parse()?)
}

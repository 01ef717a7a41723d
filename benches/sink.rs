//! An upstream of minimal cost: it sends the same response to every request and parses none of them.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const REPLY: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Yes."}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1,"totalTokenCount":10}}"#;

/// Serves in this process, until it is dropped.
pub struct Sink {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Sink {
    /// Speaks the native format.
    pub async fn open() -> Result<Self> {
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
    let length = REPLY.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{REPLY}"
    );
    let mut read = vec![0; 1 << 18];
    loop {
        let mut filled = 0;
        let mut whole = usize::MAX;
        while filled < whole {
            // What is past the head is read over itself: nobody looks at it.
            let place = if whole == usize::MAX { filled } else { 0 };
            let count = stream.read(&mut read[place..]).await?;
            ensure!(count > 0, "closed");
            filled += count;
            if whole == usize::MAX
                && let Some(end) = memmem::find(&read[..filled], b"\r\n\r\n")
            {
                whole = end + 4 + content_length(&read[..end])?;
            }
        }
        stream.write_all(answer.as_bytes()).await?;
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    let head = str::from_utf8(head)?.to_ascii_lowercase();
    let (_, length) = head.split_once("content-length:").context("no length")?;
    let length = length.lines().next().unwrap_or_default();
    Ok(length.trim().parse()?)
}

//! One HTTP/1.1 client connection, written by hand because a full client costs more CPU than the proxy it would measure.

use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What of an answer's body is still to come.
enum Rest {
    Bytes(usize),
    /// So much of the chunk that has begun.
    Chunks(usize),
    Nothing,
}

struct Head {
    bytes: usize,
    status: u16,
    rest: Rest,
    closes: bool,
}

pub struct Connection {
    stream: TcpStream,
    received: BytesMut,
    rest: Rest,
    closes: bool,
    body: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: BytesMut::new(),
            rest: Rest::Nothing,
            closes: false,
            body: Vec::new(),
        })
    }

    /// Sends a whole request and gives the body of its answer, which must be a 200 that leaves the connection open.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<&[u8]> {
        let status = self.ask(request).await?;
        self.body.clear();
        while let Some(piece) = self.piece().await? {
            self.body.extend_from_slice(&piece);
        }
        if status != 200 {
            let start = &self.body[..self.body.len().min(300)];
            bail!("status {status}: {}", String::from_utf8_lossy(start));
        }
        ensure!(self.is_kept(), "the answer closes its connection");
        Ok(&self.body)
    }

    /// Sends a whole request; the status of its answer.
    pub async fn ask(&mut self, request: &[u8]) -> Result<u16> {
        self.stream.write_all(request).await?;
        let head = loop {
            match parse_head(&self.received)? {
                Some(head) => break head,
                None => self.receive().await?,
            }
        };
        self.received.advance(head.bytes);
        (self.rest, self.closes) = (head.rest, head.closes);
        Ok(head.status)
    }

    /// The next piece of the answer's body; `None`: that was all.
    pub async fn piece(&mut self) -> Result<Option<Bytes>> {
        loop {
            match &mut self.rest {
                Rest::Bytes(0) | Rest::Nothing => {
                    self.rest = Rest::Nothing;
                    ensure!(
                        self.received.is_empty(),
                        "bytes after the end of the answer"
                    );
                    return Ok(None);
                }
                Rest::Chunks(0) => self.begin_chunk().await?,
                Rest::Bytes(left) | Rest::Chunks(left) if !self.received.is_empty() => {
                    let length = self.received.len().min(*left);
                    *left -= length;
                    let piece = self.received.split_to(length).freeze();
                    if let Rest::Chunks(0) = self.rest {
                        self.end_chunk().await?;
                    }
                    return Ok(Some(piece));
                }
                Rest::Bytes(_) | Rest::Chunks(_) => self.receive().await?,
            }
        }
    }

    async fn receive(&mut self) -> Result<()> {
        self.received.reserve(16 * 1024);
        let count = self.stream.read_buf(&mut self.received).await?;
        ensure!(count > 0, "connection closed before the end of the answer");
        Ok(())
    }

    async fn begin_chunk(&mut self) -> Result<()> {
        let size = loop {
            let size = httparse::parse_chunk_size(&self.received)
                .map_err(|_| anyhow!("not a chunk size"))?;
            if let httparse::Status::Complete((bytes, size)) = size {
                self.received.advance(bytes);
                break usize::try_from(size)?;
            }
            self.receive().await?;
        };
        self.rest = Rest::Chunks(size);
        if size == 0 {
            // Trailers are not read: no leg sends any, and one that did would fail here.
            self.end_chunk().await?;
            self.rest = Rest::Nothing;
        }
        Ok(())
    }

    async fn end_chunk(&mut self) -> Result<()> {
        while self.received.len() < 2 {
            self.receive().await?;
        }
        ensure!(self.received.starts_with(b"\r\n"), "a chunk without an end");
        self.received.advance(2);
        Ok(())
    }

    /// Whether another request may follow on it.
    pub fn is_kept(&self) -> bool {
        !self.closes && matches!(self.rest, Rest::Nothing)
    }
}

fn parse_head(received: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(bytes) = response.parse(received)? else {
        return Ok(None);
    };
    let status = response.code.context("an answer without a status")?;
    let (mut rest, mut closes) = (None, false);
    for header in response.headers.iter() {
        let value = str::from_utf8(header.value)?.trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            rest = Some(Rest::Bytes(value.parse()?));
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            ensure!(value.eq_ignore_ascii_case("chunked"), "encoding {value}");
            rest = Some(Rest::Chunks(0));
        } else if header.name.eq_ignore_ascii_case("connection") {
            closes = value.eq_ignore_ascii_case("close");
        }
    }
    let rest = rest.context("an answer that ends only with its connection")?;
    Ok(Some(Head {
        bytes,
        status,
        rest,
        closes,
    }))
}

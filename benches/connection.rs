//! One HTTP/1.1 client connection, written by hand because a full client costs more CPU than the proxy it would measure.

use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The part of a response's body that has not been read.
enum Remaining {
    /// Bytes left of a body with a content length.
    Length(usize),
    /// Bytes left of the current chunk of a chunked body.
    Chunk(usize),
    Nothing,
}

struct ResponseHead {
    length: usize,
    status: u16,
    body: Remaining,
    closes: bool,
}

pub struct Connection {
    stream: TcpStream,
    received: BytesMut,
    remaining: Remaining,
    /// The last response had `connection: close`.
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
            remaining: Remaining::Nothing,
            closes: false,
            body: Vec::new(),
        })
    }

    /// Sends a request and returns the body of its response, which must be a 200 that leaves the connection open.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<&[u8]> {
        let status = self.send_request(request).await?;
        self.body.clear();
        while let Some(chunk) = self.read_body().await? {
            self.body.extend_from_slice(&chunk);
        }
        if status != 200 {
            let start = &self.body[..self.body.len().min(300)];
            bail!("status {status}: {}", String::from_utf8_lossy(start));
        }
        ensure!(self.is_reusable(), "the response closes its connection");
        Ok(&self.body)
    }

    /// Sends a request, reads the head of its response and returns the status.
    pub async fn send_request(&mut self, request: &[u8]) -> Result<u16> {
        self.stream.write_all(request).await?;
        let head = loop {
            match parse_head(&self.received)? {
                Some(head) => break head,
                None => self.receive().await?,
            }
        };
        self.received.advance(head.length);
        (self.remaining, self.closes) = (head.body, head.closes);
        Ok(head.status)
    }

    /// Reads the next bytes of the response's body; `None` at its end.
    pub async fn read_body(&mut self) -> Result<Option<Bytes>> {
        loop {
            match &mut self.remaining {
                Remaining::Length(0) | Remaining::Nothing => {
                    self.remaining = Remaining::Nothing;
                    ensure!(
                        self.received.is_empty(),
                        "bytes after the end of the response"
                    );
                    return Ok(None);
                }
                Remaining::Chunk(0) => self.begin_chunk().await?,
                Remaining::Length(left) | Remaining::Chunk(left) if !self.received.is_empty() => {
                    let length = self.received.len().min(*left);
                    *left -= length;
                    let bytes = self.received.split_to(length).freeze();
                    if let Remaining::Chunk(0) = self.remaining {
                        self.end_chunk().await?;
                    }
                    return Ok(Some(bytes));
                }
                Remaining::Length(_) | Remaining::Chunk(_) => self.receive().await?,
            }
        }
    }

    async fn receive(&mut self) -> Result<()> {
        self.received.reserve(16 * 1024);
        let count = self.stream.read_buf(&mut self.received).await?;
        ensure!(
            count > 0,
            "connection closed before the end of the response"
        );
        Ok(())
    }

    async fn begin_chunk(&mut self) -> Result<()> {
        let size = loop {
            let size = httparse::parse_chunk_size(&self.received)
                .map_err(|_| anyhow!("invalid chunk size"))?;
            if let httparse::Status::Complete((bytes, size)) = size {
                self.received.advance(bytes);
                break usize::try_from(size)?;
            }
            self.receive().await?;
        };
        self.remaining = Remaining::Chunk(size);
        if size == 0 {
            // Trailers are not parsed: no variant sends any, and one that did would fail here.
            self.end_chunk().await?;
            self.remaining = Remaining::Nothing;
        }
        Ok(())
    }

    async fn end_chunk(&mut self) -> Result<()> {
        while self.received.len() < 2 {
            self.receive().await?;
        }
        ensure!(
            self.received.starts_with(b"\r\n"),
            "a chunk without CRLF at its end"
        );
        self.received.advance(2);
        Ok(())
    }

    /// Whether the connection can send another request.
    pub fn is_reusable(&self) -> bool {
        !self.closes && matches!(self.remaining, Remaining::Nothing)
    }
}

/// Parses the head of a response; `None` if it is not complete.
fn parse_head(received: &[u8]) -> Result<Option<ResponseHead>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(received)? else {
        return Ok(None);
    };
    let status = response.code.context("a response without a status")?;
    let (mut body, mut closes) = (None, false);
    for header in response.headers.iter() {
        let value = str::from_utf8(header.value)?.trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            body = Some(Remaining::Length(value.parse()?));
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            ensure!(
                value.eq_ignore_ascii_case("chunked"),
                "transfer-encoding {value}"
            );
            body = Some(Remaining::Chunk(0));
        } else if header.name.eq_ignore_ascii_case("connection") {
            closes = value.eq_ignore_ascii_case("close");
        }
    }
    let body = body.context("a response with neither content-length nor transfer-encoding")?;
    Ok(Some(ResponseHead {
        length,
        status,
        body,
        closes,
    }))
}

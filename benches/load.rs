//! The load: a closed loop over keep-alive connections that reads every answer to its end and checks it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::work::Request;

/// How long an answer may take beyond the time that the loop was given.
const PATIENCE: Duration = Duration::from_secs(20);

/// The most requests of one loop, all connections together: bounds the memory that the latencies take.
const MOST_REQUESTS: usize = 4_000_000;

enum Length {
    Known(usize),
    Chunked,
}

struct Head {
    bytes: usize,
    status: u16,
    length: Length,
    closes: bool,
}

/// One HTTP/1.1 client connection, written by hand because a full client costs more CPU than the proxy it would measure.
pub struct Connection {
    stream: TcpStream,
    received: BytesMut,
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
            body: Vec::new(),
        })
    }

    /// Sends a whole request and gives the body of its answer, which must be a 200 that leaves the connection open.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(request).await?;
        let head = loop {
            match parse_head(&self.received)? {
                Some(head) => break head,
                None => self.receive().await?,
            }
        };
        self.received.advance(head.bytes);
        self.body.clear();
        match head.length {
            Length::Known(length) => self.take_body(length).await?,
            Length::Chunked => self.take_chunks().await?,
        }
        ensure!(
            self.received.is_empty(),
            "bytes after the end of the answer"
        );
        if head.status != 200 {
            let start = &self.body[..self.body.len().min(300)];
            bail!("status {}: {}", head.status, String::from_utf8_lossy(start));
        }
        ensure!(!head.closes, "the answer closes its connection");
        Ok(&self.body)
    }

    async fn receive(&mut self) -> Result<()> {
        self.received.reserve(16 * 1024);
        let count = self.stream.read_buf(&mut self.received).await?;
        ensure!(count > 0, "connection closed before the end of the answer");
        Ok(())
    }

    async fn take_body(&mut self, length: usize) -> Result<()> {
        while self.received.len() < length {
            self.receive().await?;
        }
        self.body.extend_from_slice(&self.received[..length]);
        self.received.advance(length);
        Ok(())
    }

    async fn take_chunks(&mut self) -> Result<()> {
        loop {
            let size = self.take_chunk_size().await?;
            if size > 0 {
                self.take_body(size).await?;
            }
            while self.received.len() < 2 {
                self.receive().await?;
            }
            // Trailers are not read: no leg sends any, and one that did would fail here.
            ensure!(self.received.starts_with(b"\r\n"), "a chunk without an end");
            self.received.advance(2);
            if size == 0 {
                return Ok(());
            }
        }
    }

    async fn take_chunk_size(&mut self) -> Result<usize> {
        loop {
            let size = httparse::parse_chunk_size(&self.received)
                .map_err(|_| anyhow!("not a chunk size"))?;
            if let httparse::Status::Complete((bytes, size)) = size {
                self.received.advance(bytes);
                return Ok(usize::try_from(size)?);
            }
            self.receive().await?;
        }
    }
}

fn parse_head(received: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(bytes) = response.parse(received)? else {
        return Ok(None);
    };
    let status = response.code.context("an answer without a status")?;
    let (mut length, mut closes) = (None, false);
    for header in response.headers.iter() {
        let value = str::from_utf8(header.value)?.trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            length = Some(Length::Known(value.parse()?));
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            ensure!(value.eq_ignore_ascii_case("chunked"), "encoding {value}");
            length = Some(Length::Chunked);
        } else if header.name.eq_ignore_ascii_case("connection") {
            closes = value.eq_ignore_ascii_case("close");
        }
    }
    let length = length.context("an answer that ends only with its connection")?;
    Ok(Some(Head {
        bytes,
        status,
        length,
        closes,
    }))
}

/// What came of one loop.
#[derive(Default)]
pub struct Tally {
    pub latencies: Vec<Duration>,
    pub failures: Vec<String>,
}

/// The connections of one measurement; one that fails is not used again.
pub struct Crew {
    connections: Vec<Connection>,
}

impl Crew {
    pub async fn open(address: SocketAddr, count: usize) -> Result<Self> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            connections.push(Connection::open(address).await?);
        }
        Ok(Self { connections })
    }

    /// Sends the request over and over on every connection; returns when the answers to all requests begun in this time are in.
    pub async fn drive(&mut self, request: &Arc<Request>, time: Duration) -> Tally {
        let end = Instant::now() + time;
        let most = MOST_REQUESTS / self.connections.len().max(1);
        let mut loops = JoinSet::new();
        for connection in self.connections.drain(..) {
            loops.spawn(repeat(connection, Arc::clone(request), end, most));
        }
        let mut tally = Tally::default();
        let gather = async {
            while let Some(ended) = loops.join_next().await {
                let (connection, part) = ended.expect("a loop of requests does not panic");
                self.connections.extend(connection);
                tally.latencies.extend(part.latencies);
                tally.failures.extend(part.failures);
            }
        };
        if tokio::time::timeout(time + PATIENCE, gather).await.is_err() {
            let failure = format!("{} answers did not end", loops.len());
            tally.failures.push(failure);
        }
        tally
    }
}

async fn repeat(
    mut connection: Connection,
    request: Arc<Request>,
    end: Instant,
    most: usize,
) -> (Option<Connection>, Tally) {
    let mut tally = Tally::default();
    let mut begin = Instant::now();
    while begin < end && tally.latencies.len() < most {
        let answer = connection.exchange(request.bytes()).await;
        if let Err(failure) = answer.and_then(|body| request.check_end(body)) {
            tally.failures.push(format!("{failure:#}"));
            return (None, tally);
        }
        let now = Instant::now();
        tally.latencies.push(now - begin);
        begin = now;
    }
    (Some(connection), tally)
}

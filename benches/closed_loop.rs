//! The closed loop: keep-alive connections, each with one request at a time, that read every response to its end and check it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::workload::Request;

/// How long the last responses may take beyond the time that the loop runs.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests that all connections send in turn, over and over.
pub struct RequestCycle {
    requests: Vec<Request>,
    next: AtomicUsize,
}

impl RequestCycle {
    /// `requests` must not be empty.
    pub fn new(requests: Vec<Request>) -> Arc<Self> {
        Arc::new(Self {
            requests,
            next: AtomicUsize::new(0),
        })
    }

    /// The number of different requests.
    pub fn count(&self) -> u64 {
        self.requests.len() as u64
    }

    pub fn next(&self) -> &Request {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        &self.requests[number % self.requests.len()]
    }
}

/// The connections that send the load of one variant.
pub struct ClosedLoop {
    connections: Vec<Connection>,
}

impl ClosedLoop {
    pub async fn open(address: SocketAddr, count: u16) -> Result<Self> {
        let mut connections = Vec::with_capacity(count.into());
        for _ in 0..count {
            connections.push(Connection::open(address).await?);
        }
        Ok(Self { connections })
    }

    /// Sends requests on every connection for `time`, reads the responses to all of them, and returns their number.
    pub async fn run(&mut self, requests: &Arc<RequestCycle>, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        let mut loops = JoinSet::new();
        for connection in self.connections.drain(..) {
            loops.spawn(send_until(end, connection, Arc::clone(requests)));
        }
        let join_all = async {
            let mut responses = 0;
            while let Some(joined) = loops.join_next().await {
                let (connection, count) = joined??;
                self.connections.push(connection);
                responses += count;
            }
            Ok(responses)
        };
        let joined = tokio::time::timeout(time + RESPONSE_TIMEOUT, join_all).await;
        joined.context("timeout while reading responses")?
    }
}

/// Sends at least one request; returns the connection and the number of responses.
async fn send_until(
    end: Instant,
    mut connection: Connection,
    requests: Arc<RequestCycle>,
) -> Result<(Connection, u64)> {
    let mut responses = 0;
    while responses == 0 || Instant::now() < end {
        let request = requests.next();
        let body = connection.exchange(request.bytes()).await?;
        request.check_end(body)?;
        responses += 1;
    }
    Ok((connection, responses))
}

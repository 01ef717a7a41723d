//! The load: a closed loop over keep-alive connections that reads every answer to its end and checks it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::work::Request;

/// How long an answer may take beyond the time that the loop was given.
const PATIENCE: Duration = Duration::from_secs(20);

/// The most requests of one loop, all connections together: bounds the memory that the latencies take.
const MOST_REQUESTS: usize = 4_000_000;

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

//! The closed loop: keep-alive connections, each with one request at a time, that read every answer to its end and check it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::work::Request;

/// How long an answer may take beyond the time that the loop was given.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is asked, one request after the other and then from the beginning.
pub struct Questions {
    requests: Vec<Request>,
    next: AtomicUsize,
}

impl Questions {
    pub fn new(requests: Vec<Request>) -> Arc<Self> {
        Arc::new(Self {
            requests,
            next: AtomicUsize::new(0),
        })
    }

    /// Never none.
    pub fn count(&self) -> u64 {
        self.requests.len() as u64
    }

    pub fn next(&self) -> &Request {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        &self.requests[number % self.requests.len()]
    }
}

/// The connections of one leg.
pub struct Crew {
    connections: Vec<Connection>,
}

impl Crew {
    pub async fn open(address: SocketAddr, count: u16) -> Result<Self> {
        let mut connections = Vec::with_capacity(count.into());
        for _ in 0..count {
            connections.push(Connection::open(address).await?);
        }
        Ok(Self { connections })
    }

    /// Asks over and over on every connection; returns the number of answers when those to all requests begun in this time are in.
    pub async fn drive(&mut self, questions: &Arc<Questions>, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        let mut loops = JoinSet::new();
        for connection in self.connections.drain(..) {
            loops.spawn(repeat(connection, Arc::clone(questions), end));
        }
        let gather = async {
            let mut answers = 0;
            while let Some(ended) = loops.join_next().await {
                let (connection, part) = ended??;
                self.connections.push(connection);
                answers += part;
            }
            Ok(answers)
        };
        let gathered = tokio::time::timeout(time + PATIENCE, gather).await;
        gathered.context("answers that do not end")?
    }
}

async fn repeat(
    mut connection: Connection,
    questions: Arc<Questions>,
    end: Instant,
) -> Result<(Connection, u64)> {
    let mut answers = 0;
    while answers == 0 || Instant::now() < end {
        let request = questions.next();
        let answer = connection.exchange(request.bytes()).await?;
        request.check_end(answer)?;
        answers += 1;
    }
    Ok((connection, answers))
}

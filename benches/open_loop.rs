//! The open loop: requests go out by the clock whether or not answers come back, and their times count from when they were due.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use memchr::memmem;
use nix::sys::prctl::set_timerslack;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::connection::Connection;
use crate::work::Request;

const PATIENCE: Duration = Duration::from_secs(30);

/// From the last preparation to the first request.
const LEAD: Duration = Duration::from_millis(20);

/// What every answer of the mock that is cut into words begins with, in all formats alike.
const FIRST_WORD: &[u8] = b"\"the \"";

#[derive(Clone, Copy)]
pub struct Schedule {
    /// Requests per second.
    pub rate: f64,
    pub time: Duration,
    /// Each takes its turn; enough of them that one is nearly always free when its turn comes.
    pub connections: usize,
}

/// The times of one answer.
pub struct Observation {
    /// Which of the requests it answers.
    pub request: usize,
    /// From when the request was due until its status was there.
    pub first_byte: Duration,
    /// The same until the first content of a stream.
    pub first_content: Option<Duration>,
    /// Between arrivals that ended at least one event.
    pub gaps: Vec<Duration>,
}

/// One thread's connection; a runtime of its own, because handing answers over between threads takes longer than a proxy does.
struct Post {
    runtime: Runtime,
    connection: Connection,
}

impl Post {
    fn open(address: SocketAddr, request: &Request) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connection = runtime.block_on(async {
            let mut connection = Connection::open(address).await?;
            let answer = timeout(PATIENCE, connection.exchange(request.bytes())).await??;
            request.check_whole(answer)?;
            anyhow::Ok(connection)
        })?;
        Ok(Self {
            runtime,
            connection,
        })
    }
}

/// Asks the requests in turn; blocks its thread until the last answer is in.
pub fn run(
    address: SocketAddr,
    requests: &Arc<[Request]>,
    schedule: Schedule,
) -> Result<Vec<Observation>> {
    let posts = open_all(address, requests, schedule.connections)?;
    let start = Instant::now() + LEAD;
    let total = (schedule.rate * schedule.time.as_secs_f64()) as usize;
    thread::scope(|scope| {
        let keep = |(first, post): (usize, Post)| {
            let turns = (first..total).step_by(schedule.connections);
            scope.spawn(move || serve(post, turns, requests, start, schedule.rate))
        };
        let threads: Vec<_> = posts.into_iter().enumerate().map(keep).collect();
        let mut observations = Vec::with_capacity(total);
        for thread in threads {
            observations.extend(ended(thread)?);
        }
        Ok(observations)
    })
}

/// At once: a first stream may take a while.
fn open_all(address: SocketAddr, requests: &[Request], count: usize) -> Result<Vec<Post>> {
    thread::scope(|scope| {
        let open = |number| {
            let request = &requests[number % requests.len()];
            scope.spawn(move || Post::open(address, request))
        };
        let threads: Vec<_> = (0..count).map(open).collect();
        threads.into_iter().map(ended).collect()
    })
}

fn ended<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread panicked"))?
}

fn serve(
    mut post: Post,
    turns: impl Iterator<Item = usize>,
    requests: &[Request],
    start: Instant,
    rate: f64,
) -> Result<Vec<Observation>> {
    // A sleep would else last up to 50 µs longer than it was asked to.
    set_timerslack(1)?;
    let mut observations = Vec::new();
    for turn in turns {
        let due = start + Duration::from_secs_f64(turn as f64 / rate);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let request = turn % requests.len();
        let Post {
            runtime,
            connection,
        } = &mut post;
        let observing = observe(connection, &requests[request], due);
        let observed = runtime.block_on(async { timeout(PATIENCE, observing).await });
        let observed = observed.context("an answer does not end")??;
        observations.push(Observation {
            request,
            ..observed
        });
    }
    Ok(observations)
}

async fn observe(
    connection: &mut Connection,
    request: &Request,
    due: Instant,
) -> Result<Observation> {
    let status = connection.ask(request.bytes()).await?;
    let mut observation = Observation {
        request: 0,
        first_byte: due.elapsed(),
        first_content: None,
        gaps: Vec::new(),
    };
    ensure!(status == 200, "status {status}");
    let (mut body, mut last) = (Vec::new(), None);
    while let Some(piece) = connection.piece().await? {
        let now = Instant::now();
        body.extend_from_slice(&piece);
        if !request.is_streamed() {
            continue;
        }
        if observation.first_content.is_none() && memmem::find(&body, FIRST_WORD).is_some() {
            observation.first_content = Some(now - due);
        }
        if memmem::find(&piece, b"\n\n").is_some() {
            observation.gaps.extend(last.map(|last| now - last));
            last = Some(now);
        }
    }
    request.check_end(&body)?;
    ensure!(
        observation.first_content.is_some() == request.is_streamed(),
        "no first word in a stream"
    );
    ensure!(connection.is_kept(), "the answer closes its connection");
    Ok(observation)
}

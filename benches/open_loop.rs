//! The open loop: requests are sent by the clock, whether or not earlier ones have been answered, and times count from when a request was due.

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
use crate::workload::Request;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// The time between the last preparation and the first request.
const START_DELAY: Duration = Duration::from_millis(20);

/// The first delta of every stream of the mock, in all formats.
const FIRST_WORD: &[u8] = b"\"the \"";

/// When requests are sent, and over how many connections.
#[derive(Clone, Copy)]
pub struct Schedule {
    /// Requests per second.
    pub rate: f64,
    pub time: Duration,
    /// They take turns; there must be so many that each is nearly always idle when its turn comes.
    pub connections: usize,
}

/// The times of one response.
pub struct ResponseTimes {
    /// The index of its request.
    pub request: usize,
    /// The time from when the request was due until the head of the response arrived.
    pub first_byte: Duration,
    /// The same until the first content of a stream arrived.
    pub first_content: Option<Duration>,
    /// The times between arrivals that ended at least one event.
    pub between_events: Vec<Duration>,
}

/// A connection of one thread, with its own runtime, because passing responses between threads takes longer than a proxy.
struct LoadThread {
    runtime: Runtime,
    connection: Connection,
}

impl LoadThread {
    fn open(address: SocketAddr, request: &Request) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connection = runtime.block_on(async {
            let mut connection = Connection::open(address).await?;
            let response =
                timeout(RESPONSE_TIMEOUT, connection.exchange(request.bytes())).await??;
            request.check_content(response)?;
            anyhow::Ok(connection)
        })?;
        Ok(Self {
            runtime,
            connection,
        })
    }
}

/// Sends the requests in turn, and blocks until the last response is complete.
pub fn run(
    address: SocketAddr,
    requests: &Arc<[Request]>,
    schedule: Schedule,
) -> Result<Vec<ResponseTimes>> {
    let load_threads = open_all(address, requests, schedule.connections)?;
    let start = Instant::now() + START_DELAY;
    let total = (schedule.rate * schedule.time.as_secs_f64()) as usize;
    thread::scope(|scope| {
        let spawn = |(first, load_thread): (usize, LoadThread)| {
            let turns = (first..total).step_by(schedule.connections);
            scope
                .spawn(move || send_on_schedule(load_thread, turns, requests, start, schedule.rate))
        };
        let threads: Vec<_> = load_threads.into_iter().enumerate().map(spawn).collect();
        let mut all_times = Vec::with_capacity(total);
        for thread in threads {
            all_times.extend(join(thread)?);
        }
        Ok(all_times)
    })
}

/// Opens all connections at the same time, because the first stream on each may take a while.
fn open_all(address: SocketAddr, requests: &[Request], count: usize) -> Result<Vec<LoadThread>> {
    thread::scope(|scope| {
        let open = |number| {
            let request = &requests[number % requests.len()];
            scope.spawn(move || LoadThread::open(address, request))
        };
        let threads: Vec<_> = (0..count).map(open).collect();
        threads.into_iter().map(join).collect()
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread panicked"))?
}

/// Sends the requests of these turns when they are due, and reads their responses.
fn send_on_schedule(
    mut load_thread: LoadThread,
    turns: impl Iterator<Item = usize>,
    requests: &[Request],
    start: Instant,
    rate: f64,
) -> Result<Vec<ResponseTimes>> {
    // By default, the kernel lets a sleep last up to 50 µs longer.
    set_timerslack(1)?;
    let mut all_times = Vec::new();
    for turn in turns {
        let due = start + Duration::from_secs_f64(turn as f64 / rate);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let request = turn % requests.len();
        let LoadThread {
            runtime,
            connection,
        } = &mut load_thread;
        let exchange = exchange(connection, &requests[request], due);
        let times = runtime.block_on(async { timeout(RESPONSE_TIMEOUT, exchange).await });
        let times = times.context("timeout of a response")??;
        all_times.push(ResponseTimes { request, ..times });
    }
    Ok(all_times)
}

/// Sends a request and returns the times of its response, which must be complete.
async fn exchange(
    connection: &mut Connection,
    request: &Request,
    due: Instant,
) -> Result<ResponseTimes> {
    let status = connection.send_request(request.bytes()).await?;
    let mut times = ResponseTimes {
        request: 0,
        first_byte: due.elapsed(),
        first_content: None,
        between_events: Vec::new(),
    };
    ensure!(status == 200, "status {status}");
    let (mut body, mut last) = (Vec::new(), None);
    while let Some(chunk) = connection.read_body().await? {
        let now = Instant::now();
        body.extend_from_slice(&chunk);
        if !request.is_streamed() {
            continue;
        }
        if times.first_content.is_none() && memmem::find(&body, FIRST_WORD).is_some() {
            times.first_content = Some(now - due);
        }
        if memmem::find(&chunk, b"\n\n").is_some() {
            times.between_events.extend(last.map(|last| now - last));
            last = Some(now);
        }
    }
    request.check_end(&body)?;
    ensure!(
        times.first_content.is_some() == request.is_streamed(),
        "no first word in a stream"
    );
    ensure!(
        connection.is_reusable(),
        "the response closes its connection"
    );
    Ok(times)
}

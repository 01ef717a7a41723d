//! The load of the soak: streams of every pair of formats, of which some fail and some are cancelled by their clients.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rand::RngExt as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep, timeout, timeout_at};

use crate::connection::Connection;
use crate::formats::{FORMATS, Format, Outcome};
use crate::metrics::read_metric;
use crate::process::{Process, ResourceUsage, free_addresses, load_average, mebibytes};
use crate::setup::{ConfigOptions, TestSetup};

/// The growth of memory after the first minute that is allowed, as a part of it.
const AIM: f64 = 0.05;
const FIRST_MINUTE: Duration = Duration::from_secs(60);

const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The time over which the clients start, so that their streams do not all end at once.
const RAMP_UP: Duration = Duration::from_secs(10);

/// The time until nothing is left of the load, longer than idle upstream connections stay in the pool.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(90);

/// No stream lasts longer, however busy the machine is.
const STREAM_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Args)]
pub struct StreamsOptions {
    /// Number of concurrent streams
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u16).range(1..=8000))]
    streams: u16,
    /// Duration of the load in minutes
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Milliseconds between two events of a stream
    #[arg(long, default_value_t = 500)]
    pace: u64,
}

impl StreamsOptions {
    pub fn quick() -> Self {
        Self {
            streams: 40,
            minutes: 0.05,
            pace: 20,
        }
    }
}

/// What happens to a stream, at the mock or at the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scenario {
    /// The stream is complete.
    Complete,
    /// The mock waits before its response.
    Slow,
    /// The client closes its connection.
    Cancel,
    /// The mock closes its connection.
    Disconnect,
    /// The mock sends an error event.
    ErrorEvent,
    /// The mock responds with status 503.
    ErrorStatus,
    /// The mock leaves out the last event.
    MissingEnd,
}

impl Scenario {
    /// Three of five streams are complete; the others have one of the faults at random.
    fn random() -> Self {
        let faults = [
            Self::Slow,
            Self::Cancel,
            Self::Cancel,
            Self::Disconnect,
            Self::ErrorEvent,
            Self::ErrorStatus,
            Self::MissingEnd,
        ];
        match rand::rng().random_range(0..5) {
            0..3 => Self::Complete,
            _ => faults[rand::rng().random_range(0..faults.len())],
        }
    }

    /// Returns a prompt with directives for the mock.
    fn prompt(self, pace: u64) -> String {
        let mut random = rand::rng();
        let events = random.random_range(10..60);
        let at = random.random_range(0..events);
        let fault = match self {
            Self::Complete | Self::Cancel => String::new(),
            Self::Slow => "mock:slow=2s".to_owned(),
            Self::Disconnect => format!("mock:cut={at}"),
            Self::ErrorEvent => format!("mock:stream_error={at}"),
            Self::ErrorStatus => "mock:error=503".to_owned(),
            Self::MissingEnd => "mock:no_end".to_owned(),
        };
        format!("mock:events={events} mock:pace={pace}ms {fault}")
    }

    /// The outcome of a response that the client reads to its end.
    fn expected(self) -> Outcome {
        match self {
            Self::Complete | Self::Slow | Self::Cancel => Outcome::Complete,
            Self::Disconnect | Self::ErrorEvent | Self::ErrorStatus | Self::MissingEnd => {
                Outcome::Failed
            }
        }
    }
}

/// The number of streams by how they ended.
#[derive(Default)]
struct Counters {
    complete: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    unexpected: AtomicU64,
}

fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Runs a client, which requests one stream after the other.
async fn run_client(address: SocketAddr, pace: u64, end: Instant, counters: Arc<Counters>) {
    let mut idle = None;
    let delay = RAMP_UP.mul_f64(rand::rng().random_range(0.0..1.0));
    sleep(delay.min(end - Instant::now())).await;
    while Instant::now() < end {
        let pick = || FORMATS[rand::rng().random_range(0..FORMATS.len())];
        let (client, upstream, scenario) = (pick(), pick(), Scenario::random());
        let stream = run_stream(address, client, upstream, scenario, pace, idle.take());
        // A stream that is still open at the end is cancelled.
        let Ok(ended) = timeout_at(end, stream).await else {
            increment(&counters.cancelled);
            return;
        };
        match ended {
            Ok(None) => increment(&counters.cancelled),
            Ok(Some((Outcome::Complete, connection))) => {
                increment(&counters.complete);
                idle = connection;
            }
            Ok(Some((_, connection))) => {
                increment(&counters.failed);
                idle = connection;
            }
            Err(failure) => {
                increment(&counters.unexpected);
                let (client, upstream) = (client.name(), upstream.name());
                eprintln!("{client} from {upstream}: {failure:#}");
            }
        }
    }
}

/// The outcome of a stream, and its connection if that can be reused; `None` if the client cancelled the stream.
type StreamResult = Option<(Outcome, Option<Connection>)>;

/// Requests a stream and reads it, on an idle connection or a new one.
async fn run_stream(
    address: SocketAddr,
    client: Format,
    upstream: Format,
    scenario: Scenario,
    pace: u64,
    idle: Option<Connection>,
) -> Result<StreamResult> {
    let prompt = scenario.prompt(pace);
    let request = client.encode_stream_request(address, &TestSetup::model(upstream), &prompt);
    let mut connection = match idle {
        Some(connection) => connection,
        None => Connection::open(address).await?,
    };
    let read = async {
        let status = connection.send_request(&request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = connection.read_body().await? {
            body.extend_from_slice(&chunk);
        }
        let outcome = client.classify_response(status, &body);
        let start = body.len().saturating_sub(400);
        ensure!(
            outcome == scenario.expected(),
            "{prompt}: status {status}, {outcome:?}: …{}",
            String::from_utf8_lossy(&body[start..])
        );
        Ok(outcome)
    };
    let limit = match scenario {
        Scenario::Cancel => Duration::from_millis(pace * rand::rng().random_range(0..40)),
        _ => STREAM_TIMEOUT,
    };
    match timeout(limit, read).await {
        Err(_) if scenario == Scenario::Cancel => Ok(None),
        Err(elapsed) => Err(elapsed).context(prompt),
        Ok(outcome) => Ok(Some((
            outcome?,
            connection.is_reusable().then_some(connection),
        ))),
    }
}

pub async fn run(options: &StreamsOptions, directory: &Path) -> Result<()> {
    let [mock, listen, admin] = free_addresses()?;
    let setup = TestSetup {
        mock,
        listen,
        admin,
    };
    let _mock = setup.start_mock(directory).await?;
    let gateway = setup
        .start_gateway(directory, &setup.config(&ConfigOptions::SOAK))
        .await?;
    let baseline = Baseline::read(&setup, &gateway).await?;
    println!(
        "{} streams for {} minutes, an event every {} ms, load average {}\nbefore: {baseline}",
        options.streams,
        options.minutes,
        options.pace,
        load_average()?
    );
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(options.minutes * 60.0);
    let counters = Arc::new(Counters::default());
    let mut clients = JoinSet::new();
    for _ in 0..options.streams {
        clients.spawn(run_client(listen, options.pace, end, counters.clone()));
    }
    let memory = monitor(&setup, &gateway, &counters, begin, end).await?;
    while let Some(ended) = clients.join_next().await {
        ended?;
    }
    wait_until_drained(&setup, &gateway, &baseline).await?;
    check_growth(&memory)?;
    let unexpected = counters.unexpected.load(Ordering::Relaxed);
    ensure!(
        unexpected == 0,
        "{unexpected} streams had an unexpected outcome"
    );
    Ok(())
}

const REQUESTS_IN_FLIGHT: &str = "omniglot_requests_in_flight";
const TASKS: &str = "omniglot_tasks";
const UPSTREAM_REQUESTS_IN_FLIGHT: &str = "omniglot_upstream_requests_in_flight";

/// Prints a line every ten seconds, and returns the resident memory at each of them after the first minute.
async fn monitor(
    setup: &TestSetup,
    gateway: &Process,
    counters: &Counters,
    begin: Instant,
    end: Instant,
) -> Result<Vec<u64>> {
    let mut memory = Vec::new();
    let mut ticks = interval_at(begin + REPORT_INTERVAL, REPORT_INTERVAL);
    let mut cpu = gateway.cpu_time()?;
    while timeout_at(end, ticks.tick()).await.is_ok() {
        let usage = gateway.resource_usage()?;
        let now = gateway.cpu_time()?;
        let share = (now - cpu).as_secs_f64() / REPORT_INTERVAL.as_secs_f64() * 100.0;
        cpu = now;
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        println!(
            "{:>5} s: resident {:.1} MiB, {} descriptors, {} tasks, {} in flight, CPU {share:.0} %; streams: {} complete, {} failed, {} cancelled, {} unexpected",
            begin.elapsed().as_secs(),
            mebibytes(usage.resident),
            usage.descriptors,
            read_metric(setup.admin, TASKS).await?,
            read_metric(setup.admin, REQUESTS_IN_FLIGHT).await?,
            value(&counters.complete),
            value(&counters.failed),
            value(&counters.cancelled),
            value(&counters.unexpected)
        );
        if begin.elapsed() >= FIRST_MINUTE {
            memory.push(usage.resident);
        }
    }
    Ok(memory)
}

/// The resources that the gateway uses without load.
pub struct Baseline {
    usage: ResourceUsage,
    tasks: u64,
}

impl Baseline {
    /// Reads the current resources. Tasks are counted from the first connection on, so one is opened if there are none.
    pub async fn read(setup: &TestSetup, gateway: &Process) -> Result<Self> {
        let since = Instant::now();
        loop {
            let tasks = read_metric(setup.admin, TASKS).await?;
            if tasks > 0 {
                let usage = gateway.resource_usage()?;
                return Ok(Self { usage, tasks });
            }
            ensure!(
                since.elapsed() < DRAIN_TIMEOUT,
                "the gateway counts no tasks"
            );
            drop(Connection::open(setup.listen).await?);
            sleep(Duration::from_millis(10)).await;
        }
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} tasks", self.usage, self.tasks)
    }
}

/// Waits until the load has left no request in flight, and no more tasks and file descriptors than before it.
pub async fn wait_until_drained(
    setup: &TestSetup,
    gateway: &Process,
    baseline: &Baseline,
) -> Result<()> {
    let since = Instant::now();
    loop {
        let in_flight = read_metric(setup.admin, REQUESTS_IN_FLIGHT).await?
            + read_metric(setup.admin, UPSTREAM_REQUESTS_IN_FLIGHT).await?;
        let now = Baseline::read(setup, gateway).await?;
        let (descriptors, before) = (now.usage.descriptors, baseline.usage.descriptors);
        if in_flight == 0 && descriptors <= before && now.tasks <= baseline.tasks {
            let seconds = since.elapsed().as_secs();
            println!("{seconds} s after the load: {now}, nothing in flight");
            return Ok(());
        }
        ensure!(
            since.elapsed() < DRAIN_TIMEOUT,
            "{in_flight} still in flight, {descriptors} descriptors instead of {before}, {} tasks instead of {}",
            now.tasks,
            baseline.tasks
        );
        sleep(Duration::from_secs(1)).await;
    }
}

fn check_growth(memory: &[u64]) -> Result<()> {
    let (Some(&first), Some(&maximum)) = (memory.first(), memory.iter().max()) else {
        println!("memory: the run was too short to measure its growth");
        return Ok(());
    };
    let growth = maximum as f64 / first as f64 - 1.0;
    println!(
        "memory: {:.1} MiB after the first minute, then at most {:.1} MiB: {:+.1} %, aim {:.0} %",
        mebibytes(first),
        mebibytes(maximum),
        growth * 100.0,
        AIM * 100.0
    );
    ensure!(growth < AIM, "the memory grows");
    Ok(())
}

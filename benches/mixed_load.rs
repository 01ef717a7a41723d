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
use crate::formats::{Ending, FORMATS, Format};
use crate::metrics::gauge;
use crate::process::{Process, Vitals, free_addresses, load_average, mebibytes};
use crate::setup::{Ground, Shape};

/// By how much the memory may grow after the first minute.
const AIM: f64 = 0.05;
const FIRST_MINUTE: Duration = Duration::from_secs(60);

/// A line is printed this often.
const LOOK: Duration = Duration::from_secs(10);

/// Streams begin over this time, so that they do not all end at once.
const SPREAD: Duration = Duration::from_secs(10);

/// Upstream connections wait in the pool for less than this.
const CALM: Duration = Duration::from_secs(90);

/// No stream that is asked for lasts longer, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Args)]
pub struct Options {
    /// Streams at once
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u16).range(1..=8000))]
    streams: u16,
    /// How long
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Milliseconds between two events of a stream
    #[arg(long, default_value_t = 500)]
    pace: u64,
}

impl Options {
    pub fn quick() -> Self {
        Self {
            streams: 40,
            minutes: 0.05,
            pace: 20,
        }
    }
}

/// What is asked of the mock, or done by the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Whole,
    Slow,
    Leave,
    Cut,
    Error,
    Refused,
    NoEnd,
}

impl Wish {
    /// Three of five streams go well; the others have every kind of trouble alike.
    fn any() -> Self {
        let troubles = [
            Self::Slow,
            Self::Leave,
            Self::Leave,
            Self::Cut,
            Self::Error,
            Self::Refused,
            Self::NoEnd,
        ];
        match rand::rng().random_range(0..5) {
            0..3 => Self::Whole,
            _ => troubles[rand::rng().random_range(0..troubles.len())],
        }
    }

    fn words(self, pace: u64) -> String {
        let mut random = rand::rng();
        let events = random.random_range(10..60);
        let at = random.random_range(0..events);
        let trouble = match self {
            Self::Whole | Self::Leave => String::new(),
            Self::Slow => "mock:slow=2s".to_owned(),
            Self::Cut => format!("mock:cut={at}"),
            Self::Error => format!("mock:stream_error={at}"),
            Self::Refused => "mock:error=503".to_owned(),
            Self::NoEnd => "mock:no_end".to_owned(),
        };
        format!("mock:events={events} mock:pace={pace}ms {trouble}")
    }

    /// How an answer must end that the client has waited for.
    fn expected(self) -> Ending {
        match self {
            Self::Whole | Self::Slow | Self::Leave => Ending::Whole,
            Self::Cut | Self::Error | Self::Refused | Self::NoEnd => Ending::Told,
        }
    }
}

#[derive(Default)]
struct Counts {
    whole: AtomicU64,
    told: AtomicU64,
    left: AtomicU64,
    wrong: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// One client, which asks for one stream after the other.
async fn client(address: SocketAddr, pace: u64, end: Instant, counts: Arc<Counts>) {
    let mut kept = None;
    let wait = SPREAD.mul_f64(rand::rng().random_range(0.0..1.0));
    sleep(wait.min(end - Instant::now())).await;
    while Instant::now() < end {
        let pick = || FORMATS[rand::rng().random_range(0..FORMATS.len())];
        let (client, upstream, wish) = (pick(), pick(), Wish::any());
        let stream = one(address, client, upstream, wish, pace, kept.take());
        // Those that are still open at the end are left as they are.
        let Ok(ended) = timeout_at(end, stream).await else {
            count(&counts.left);
            return;
        };
        match ended {
            Ok(None) => count(&counts.left),
            Ok(Some((Ending::Whole, connection))) => {
                count(&counts.whole);
                kept = connection;
            }
            Ok(Some((_, connection))) => {
                count(&counts.told);
                kept = connection;
            }
            Err(failure) => {
                count(&counts.wrong);
                let (client, upstream) = (client.name(), upstream.name());
                eprintln!("{client} from {upstream}: {failure:#}");
            }
        }
    }
}

type Ended = Option<(Ending, Option<Connection>)>;

/// One stream; `None`: the client left.
async fn one(
    address: SocketAddr,
    client: Format,
    upstream: Format,
    wish: Wish,
    pace: u64,
    kept: Option<Connection>,
) -> Result<Ended> {
    let words = wish.words(pace);
    let request = client.request(address, &Ground::model(upstream), &words);
    let mut connection = match kept {
        Some(connection) => connection,
        None => Connection::open(address).await?,
    };
    let reading = async {
        let status = connection.ask(&request).await?;
        let mut body = Vec::new();
        while let Some(piece) = connection.piece().await? {
            body.extend_from_slice(&piece);
        }
        let ending = client.ending(status, &body);
        let start = body.len().saturating_sub(400);
        ensure!(
            ending == wish.expected(),
            "{words}: status {status}, {ending:?}: …{}",
            String::from_utf8_lossy(&body[start..])
        );
        Ok(ending)
    };
    let patience = match wish {
        Wish::Leave => Duration::from_millis(pace * rand::rng().random_range(0..40)),
        _ => PATIENCE,
    };
    match timeout(patience, reading).await {
        Err(_) if wish == Wish::Leave => Ok(None),
        Err(elapsed) => Err(elapsed).context(words),
        Ok(ending) => Ok(Some((ending?, connection.is_kept().then_some(connection)))),
    }
}

pub async fn run(options: &Options, directory: &Path) -> Result<()> {
    let [mock, listen, admin] = free_addresses()?;
    let ground = Ground {
        mock,
        listen,
        admin,
    };
    let _mock = ground.start_mock(directory).await?;
    let gateway = ground
        .start_gateway(directory, &ground.config(&Shape::SOAK))
        .await?;
    let baseline = Baseline::of(&ground, &gateway).await?;
    println!(
        "{} streams for {} minutes, an event every {} ms, load average {}\nbefore: {baseline}",
        options.streams,
        options.minutes,
        options.pace,
        load_average()?
    );
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(options.minutes * 60.0);
    let counts = Arc::new(Counts::default());
    let mut clients = JoinSet::new();
    for _ in 0..options.streams {
        clients.spawn(client(listen, options.pace, end, counts.clone()));
    }
    let memory = watch(&ground, &gateway, &counts, begin, end).await?;
    while let Some(ended) = clients.join_next().await {
        ended?;
    }
    calm(&ground, &gateway, &baseline).await?;
    judge(&memory)?;
    let wrong = counts.wrong.load(Ordering::Relaxed);
    ensure!(wrong == 0, "{wrong} answers did not end as they should");
    Ok(())
}

const IN_FLIGHT: &str = "omniglot_requests_in_flight";
const TASKS: &str = "omniglot_tasks";
const AT_UPSTREAMS: &str = "omniglot_upstream_requests_in_flight";

/// Prints a line every ten seconds; the resident memory of those after the first minute.
async fn watch(
    ground: &Ground,
    gateway: &Process,
    counts: &Counts,
    begin: Instant,
    end: Instant,
) -> Result<Vec<u64>> {
    let mut memory = Vec::new();
    let mut ticks = interval_at(begin + LOOK, LOOK);
    let mut cpu = gateway.cpu_time()?;
    while timeout_at(end, ticks.tick()).await.is_ok() {
        let vitals = gateway.vitals()?;
        let now = gateway.cpu_time()?;
        let share = (now - cpu).as_secs_f64() / LOOK.as_secs_f64() * 100.0;
        cpu = now;
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        println!(
            "{:>5} s: resident {:.1} MiB, {} descriptors, {} tasks, {} in flight, CPU {share:.0} %; ended {} whole, {} with an error, {} left, {} wrong",
            begin.elapsed().as_secs(),
            mebibytes(vitals.resident),
            vitals.descriptors,
            gauge(ground.admin, TASKS).await?,
            gauge(ground.admin, IN_FLIGHT).await?,
            number(&counts.whole),
            number(&counts.told),
            number(&counts.left),
            number(&counts.wrong)
        );
        if begin.elapsed() >= FIRST_MINUTE {
            memory.push(vitals.resident);
        }
    }
    Ok(memory)
}

/// What the gateway holds without any load.
pub struct Baseline {
    vitals: Vitals,
    tasks: u64,
}

impl Baseline {
    pub async fn of(ground: &Ground, gateway: &Process) -> Result<Self> {
        let since = Instant::now();
        loop {
            let tasks = gauge(ground.admin, TASKS).await?;
            if tasks > 0 {
                let vitals = gateway.vitals()?;
                return Ok(Self { vitals, tasks });
            }
            // They are counted from the first connection on.
            ensure!(since.elapsed() < CALM, "the gateway counts no tasks");
            drop(Connection::open(ground.listen).await?);
            sleep(Duration::from_millis(10)).await;
        }
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} tasks", self.vitals, self.tasks)
    }
}

/// Waits until nothing is left of the load: no request, no task and no descriptor more than before.
pub async fn calm(ground: &Ground, gateway: &Process, baseline: &Baseline) -> Result<()> {
    let since = Instant::now();
    loop {
        let in_flight =
            gauge(ground.admin, IN_FLIGHT).await? + gauge(ground.admin, AT_UPSTREAMS).await?;
        let now = Baseline::of(ground, gateway).await?;
        let (descriptors, before) = (now.vitals.descriptors, baseline.vitals.descriptors);
        if in_flight == 0 && descriptors <= before && now.tasks <= baseline.tasks {
            let seconds = since.elapsed().as_secs();
            println!("{seconds} s after the load: {now}, nothing in flight");
            return Ok(());
        }
        ensure!(
            since.elapsed() < CALM,
            "{in_flight} still in flight, {descriptors} descriptors instead of {before}, {} tasks instead of {}",
            now.tasks,
            baseline.tasks
        );
        sleep(Duration::from_secs(1)).await;
    }
}

fn judge(memory: &[u64]) -> Result<()> {
    let (Some(&first), Some(&most)) = (memory.first(), memory.iter().max()) else {
        println!("memory: too short a run to tell");
        return Ok(());
    };
    let growth = most as f64 / first as f64 - 1.0;
    println!(
        "memory: {:.1} MiB after the first minute, then at most {:.1} MiB: {:+.1} %, aim {:.0} %",
        mebibytes(first),
        mebibytes(most),
        growth * 100.0,
        AIM * 100.0
    );
    ensure!(growth < AIM, "the memory grows");
    Ok(())
}

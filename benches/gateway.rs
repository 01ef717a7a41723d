//! What the gateway costs: requests per second and CPU time per request, next to a bare pingora proxy and no proxy at all.

mod bare;
mod load;
mod process;
mod table;
mod work;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use load::{Connection, Crew};
use process::{Process, free_addresses, load_average};
use table::{Figures, Sample};
use work::{KEY, MODEL, Request, Work};

const WARM_UP: Duration = Duration::from_millis(500);
const QUICK: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Leg {
    Direct,
    Bare,
    Omniglot,
}

impl Leg {
    fn title(self) -> &'static str {
        match self {
            Self::Direct => "direct (CPU of the mock)",
            Self::Bare => "bare pingora",
            Self::Omniglot => "omniglot",
        }
    }
}

/// Measures requests per second and CPU time per request of the gateway, of a bare pingora proxy and of the mock alone.
///
/// Every round measures each leg once for each kind of work, in turns; ratios are formed within a round and their
/// median is shown with the least and the most. All traffic stays on this machine. Any answer that is not complete makes
/// the run fail. Without the --bench that `cargo bench` passes (as in `cargo test --benches`) the run is a --quick one.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench gateway -- [OPTIONS]")]
struct Options {
    /// Number of rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Seconds of one measurement, 0.1 to 60
    #[arg(long, default_value = "2", value_parser = parse_seconds)]
    seconds: Duration,
    /// Connections, each with one request at a time; a list such as 1,16,256 prints one table for each
    #[arg(long, value_delimiter = ',', default_value = "16", value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: Vec<u16>,
    /// Kinds of work
    #[arg(long, value_delimiter = ',', default_value = "json,stream,paced")]
    work: Vec<Work>,
    /// Legs
    #[arg(long, value_delimiter = ',', default_value = "direct,bare,omniglot")]
    legs: Vec<Leg>,
    /// Threads of the load itself [default: half of the cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// An upstream on this machine to use instead of the mock
    #[arg(long, value_name = "ADDRESS")]
    upstream: Option<SocketAddr>,
    /// One round of 0.3 seconds: shows that everything works, its figures mean little
    #[arg(long)]
    quick: bool,
    #[arg(long, hide = true)]
    bench: bool,
    /// Be the bare proxy, listening on the first address and forwarding to the second
    #[arg(long, hide = true, num_args = 2)]
    bare: Option<Vec<SocketAddr>>,
}

fn parse_seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse()?;
    ensure!((0.1..=60.0).contains(&seconds), "must be 0.1 to 60");
    Ok(Duration::from_secs_f64(seconds))
}

impl Options {
    fn is_quick(&self) -> bool {
        self.quick || !self.bench
    }

    fn rounds(&self) -> usize {
        if self.is_quick() {
            1
        } else {
            self.rounds.into()
        }
    }

    fn time(&self) -> Duration {
        if self.is_quick() { QUICK } else { self.seconds }
    }
}

/// A leg that is up: where requests go, and whose CPU time counts.
struct Target {
    leg: Leg,
    address: SocketAddr,
    process: Option<Process>,
}

impl Target {
    async fn start(leg: Leg, upstream: SocketAddr, directory: &Path) -> Result<Self> {
        let [address, admin] = free_addresses()?;
        let (name, mut command, ready) = match leg {
            Leg::Direct => ("mock", mock_command(address), (address, None)),
            Leg::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--bare", &address.to_string(), &upstream.to_string()]);
                ("bare", command, (address, None))
            }
            Leg::Omniglot => {
                let file = directory.join("omniglot.yaml");
                fs::write(&file, gateway_config(address, admin, upstream))?;
                let mut command = Command::new(env!("CARGO_BIN_EXE_omniglot"));
                command.arg("run").arg("-c").arg(file);
                ("omniglot", command, (admin, Some("/readyz")))
            }
        };
        let mut process = Process::start(name, &mut command, directory)?;
        process.wait_until_ready(ready.0, ready.1).await?;
        Ok(Self {
            leg,
            address,
            process: Some(process),
        })
    }

    /// Asks once for each kind of work, so that nothing is measured that is not the right answer.
    async fn try_out(&self, works: &[Work]) -> Result<()> {
        for &work in works {
            let request = Request::new(work, self.address);
            let attempt = async {
                let mut connection = Connection::open(self.address).await?;
                let answer = connection.exchange(request.bytes()).await?;
                request.check_whole(answer)?;
                anyhow::Ok(answer.len())
            };
            let length = tokio::time::timeout(Duration::from_secs(10), attempt)
                .await
                .unwrap_or_else(|elapsed| Err(elapsed.into()))
                .with_context(|| format!("{}, {}", self.leg.title(), work.title()))?;
            if self.leg == Leg::Direct {
                let sent = request.bytes().len();
                println!(
                    "{}: request of {sent} bytes, answer body of {length}",
                    work.title()
                );
            }
        }
        Ok(())
    }

    fn cpu_time(&self) -> Result<Option<Duration>> {
        self.process.as_ref().map(Process::cpu_time).transpose()
    }

    async fn measure(&self, work: Work, connections: u16, time: Duration) -> Result<Sample> {
        let request = Arc::new(Request::new(work, self.address));
        let mut crew = Crew::open(self.address, connections.into()).await?;
        let mut failures = crew.drive(&request, WARM_UP.min(time)).await.failures;
        let cpu_before = self.cpu_time()?;
        let begin = Instant::now();
        let mut tally = crew.drive(&request, time).await;
        let seconds = begin.elapsed().as_secs_f64();
        let cpu_after = self.cpu_time()?;
        failures.append(&mut tally.failures);
        if let Some(first) = failures.first() {
            let (leg, work) = (self.leg.title(), work.title());
            eprintln!("{leg}, {work}: {} failures; first: {first}", failures.len());
        }
        let latencies = &mut tally.latencies;
        latencies.sort_unstable();
        if latencies.is_empty() {
            bail!("{}: no answer to {}", self.leg.title(), work.title());
        }
        let answers = f64::from(u32::try_from(latencies.len())?);
        let cpu = cpu_before.zip(cpu_after).map(|(from, to)| to - from);
        Ok(Sample {
            requests_per_second: answers / seconds,
            cpu_microseconds: cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / answers),
            median_latency: latencies[latencies.len() / 2],
            slow_latency: latencies[latencies.len() * 99 / 100],
            failures: failures.len(),
        })
    }
}

fn mock_command(address: SocketAddr) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omniglot"));
    command.args(["mock", "--listen", &address.to_string()]);
    command
}

fn gateway_config(listen: SocketAddr, admin: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        "server: {{listen: \"{listen}\", admin: \"{admin}\"}}\n\
         keys: [{{name: bench, secret: {KEY}}}]\n\
         upstreams: [{{name: mock, format: chat, base_url: \"http://{upstream}/v1\"}}]\n\
         models: [{{id: {MODEL}, upstreams: [{{name: mock}}]}}]\n"
    )
}

/// Starts the mock, which every leg needs, and the proxies that were asked for.
async fn start_targets(options: &Options, directory: &Path) -> Result<Vec<Target>> {
    let mock = match options.upstream {
        None => {
            // The mock has no upstream of its own: the address is not used.
            let unused = SocketAddr::from(([127, 0, 0, 1], 0));
            Target::start(Leg::Direct, unused, directory).await?
        }
        Some(address) => {
            ensure!(address.ip().is_loopback(), "{address} is another machine");
            Target {
                leg: Leg::Direct,
                address,
                process: None,
            }
        }
    };
    let upstream = mock.address;
    let mut targets = vec![mock];
    for leg in [Leg::Bare, Leg::Omniglot] {
        if options.legs.contains(&leg) {
            targets.push(Target::start(leg, upstream, directory).await?);
        }
    }
    for target in &targets {
        target.try_out(&options.work).await?;
    }
    Ok(targets)
}

async fn measure_all(options: &Options, targets: &[Target], connections: u16) -> Result<Figures> {
    let mut figures = Figures::default();
    let measured: Vec<&Target> = targets
        .iter()
        .filter(|target| options.legs.contains(&target.leg))
        .collect();
    for round in 0..options.rounds() {
        eprintln!("{connections} connections, round {}", round + 1);
        for &work in &options.work {
            // Every round begins with another leg: what drifts within a round favours none.
            for turn in 0..measured.len() {
                let target = measured[(turn + round) % measured.len()];
                let sample = target.measure(work, connections, options.time()).await?;
                figures.add(work, target.leg, sample);
            }
        }
    }
    Ok(figures)
}

async fn run(options: &Options) -> Result<()> {
    let directory = TempDir::new()?;
    let cores = std::thread::available_parallelism()?;
    let targets = start_targets(options, directory.path()).await?;
    let mut failures = 0;
    for &connections in &options.connections {
        let load_before = load_average()?;
        let figures = measure_all(options, &targets, connections).await?;
        println!(
            "\n{connections} connections, {} × {:?} for each figure, {cores} cores, load average {load_before} before, {} after\n",
            options.rounds(),
            options.time(),
            load_average()?
        );
        println!("{}\n", figures.table());
        for target in targets.iter().filter(|target| target.leg != Leg::Direct) {
            let process = target.process.as_ref().context("a proxy is a process")?;
            println!("{}", process.memory()?);
        }
        for verdict in figures.verdicts() {
            println!("{verdict}");
        }
        failures += figures.failures();
    }
    ensure!(failures == 0, "{failures} answers failed");
    Ok(())
}

/// Ends a run on a signal by dropping it, so that its processes are killed.
async fn run_until_stopped(options: &Options) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = run(options) => ended,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if let Some(&[listen, upstream]) = options.bare.as_deref() {
        bare::run(listen, upstream, KEY);
    }
    let cores = std::thread::available_parallelism()?.get();
    let threads = options.threads.map_or(cores / 2, usize::from).max(1);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let ended = runtime.block_on(run_until_stopped(&options));
    Ok(ended.map_or_else(
        |failure| {
            eprintln!("The run failed: {failure:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}

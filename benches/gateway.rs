//! What the gateway costs: requests per second and CPU time per request, next to a bare pingora proxy and no proxy at all.

mod bare;
mod connection;
mod leg;
mod load;
mod process;
mod round;
mod table;
mod work;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use leg::{Leg, Target};
use process::load_average;
use table::Figures;
use work::{KEY, Work};

const QUICK: Duration = Duration::from_millis(300);

/// Measures requests per second and CPU time per request of the gateway, of a bare pingora proxy and of the mock alone.
///
/// Within a round the legs take turns in short slices; ratios are formed within a round and their median is shown with the
/// least and the most. All traffic stays on this machine. Any answer that is not complete makes
/// the run fail. Without the --bench that `cargo bench` passes (as in `cargo test --benches`) the run is a --quick one.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench gateway -- [OPTIONS]")]
struct Options {
    /// Number of rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Seconds for each leg and kind of work in a round, 0.1 to 60
    #[arg(long, default_value = "2", value_parser = parse_seconds)]
    seconds: Duration,
    /// Connections, each with one request at a time; a list such as 1,16,256 prints one table for each
    #[arg(long, value_delimiter = ',', default_value = "16", value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: Vec<u16>,
    /// Kinds of work
    #[arg(long, value_delimiter = ',', default_value = "json,stream,paced")]
    work: Vec<Work>,
    /// Legs
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "direct,bare,omniglot,store"
    )]
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

    fn rounds(&self) -> u16 {
        if self.is_quick() { 1 } else { self.rounds }
    }

    fn time(&self) -> Duration {
        if self.is_quick() { QUICK } else { self.seconds }
    }
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
    for leg in [Leg::Bare, Leg::Omniglot, Leg::Store] {
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
    for number in 1..=options.rounds() {
        eprintln!("{connections} connections, round {number}");
        for &work in &options.work {
            for (leg, sample) in
                round::measure(&measured, work, connections, options.time()).await?
            {
                figures.add(work, leg, sample);
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
            println!("{}: {}", target.leg.title(), process.vitals()?);
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

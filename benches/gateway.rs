//! Measures throughput, CPU time, latency and memory of the gateway, next to bare pingora proxies, nginx and no proxy at all.

mod aims;
mod bare;
mod closed_loop;
mod connection;
mod cores;
mod documents;
mod formats;
mod nginx;
mod open_loop;
mod open_streams;
mod parts;
mod process;
mod round;
mod settings;
mod setup;
mod sink;
mod statistics;
mod table;
mod targets;
mod timing;
mod workload;

use std::fs;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::{Parser, ValueEnum};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use aims::Aims;
use parts::RunOptions;
use process::load_average;

/// The time for each variant in a quick run.
const QUICK_TIME: Duration = Duration::from_millis(10);

/// File descriptors of the load generator, and two for each connection of a proxy.
const DESCRIPTORS: u64 = 3_000;
/// The same with thousands of connections.
const CONNECTIONS_DESCRIPTORS: u64 = 10_000;

/// Measures the gateway next to two bare pingora proxies, nginx (if installed) and the mock alone, and judges its aims.
///
/// docs/benchmark.md says how and why. All traffic stays on this machine. An incomplete response makes the run
/// fail; a missed aim does not. Without the --bench that `cargo bench` passes (as in `cargo test --benches`)
/// the run is a --quick one.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench gateway -- [OPTIONS]")]
struct Options {
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Part>,
    /// Number of rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Seconds for each variant in a round, 0.1 to 60; some parts use twice or half of it
    #[arg(long, default_value = "0.5", value_parser = parse_seconds)]
    seconds: Duration,
    /// Connections, each with one request at a time, unless a part has its own number
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// Threads of the load generator [default: half of the cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// One short round: shows that everything works; its figures mean little
    #[arg(long)]
    quick: bool,
    #[arg(long, hide = true)]
    bench: bool,
    /// Run as the bare proxy, listening on the first address and forwarding to the second
    #[arg(long, hide = true, num_args = 2)]
    bare: Option<Vec<SocketAddr>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Time to the first response, memory of the idle demo, size of the binary
    Start,
    /// All pairs of formats: requests per second, CPU time
    Pairs,
    /// All pairs of formats: an event of a long stream
    Events,
    /// A request of 1 MiB, translated in this process
    Mebibyte,
    /// Times to first byte and between events at a fixed rate
    Latency,
    /// Memory when idle, under load, per open stream
    Memory,
    /// Cost of accounting and of a store
    Store,
    /// Cost of traces
    Traces,
    /// Scale: from 1 to 2,000 connections
    Connections,
    /// Scale: 10,000 keys, models and upstreams
    Catalog,
    /// Scale: JSON from 1 KiB to 20 MiB
    Sizes,
    /// Scale: one worker thread and several
    Threads,
}

impl Part {
    async fn run(self, options: &RunOptions, aims: &mut Aims) -> Result<()> {
        match self {
            Self::Start => parts::start::run(options, aims).await,
            Self::Pairs => parts::pairs::run(options, aims).await,
            Self::Events => parts::pairs::run_events(options, aims).await,
            Self::Mebibyte => {
                parts::mebibyte::run(options, aims);
                Ok(())
            }
            Self::Latency => parts::latency::run(options, aims).await,
            Self::Memory => parts::memory::run(options, aims).await,
            Self::Store => parts::store::run(options, aims).await,
            Self::Traces => parts::traces::run(options, aims).await,
            Self::Connections => parts::connections::run(options).await,
            Self::Catalog => parts::catalog::run(options).await,
            Self::Sizes => parts::sizes::run(options).await,
            Self::Threads => parts::threads::run(options).await,
        }
    }
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

    fn includes(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn descriptors(&self) -> u64 {
        if self.includes(Part::Connections) && !self.is_quick() {
            CONNECTIONS_DESCRIPTORS
        } else {
            DESCRIPTORS
        }
    }

    fn run_options(&self) -> Result<RunOptions> {
        let quick = self.is_quick();
        Ok(RunOptions {
            directory: TempDir::new()?,
            bare_mimalloc: targets::build_bare_mimalloc()?,
            rounds: if quick { 1 } else { self.rounds },
            time: if quick { QUICK_TIME } else { self.seconds },
            connections: if quick { 4 } else { self.connections },
            quick,
        })
    }
}

/// Returns the processor's name from /proc/cpuinfo.
fn processor_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(": "));
    name.map_or("processor", |(_, name)| name).to_owned()
}

/// Prints the machine and the options of the run.
fn print_header(options: &RunOptions) -> Result<()> {
    let cores = std::thread::available_parallelism()?;
    let nginx = match nginx::find_program() {
        Some(program) => format!("nginx: {}", program.display()),
        None => "nginx is not installed and not measured".to_owned(),
    };
    println!(
        "# Benchmark of omniglot {}\n\n{}, {cores} cores, load average {} before\n{nginx}\n\
         the gateway: {}\n{} rounds, {:?} for each variant in a round; in brackets the minimum and maximum of the rounds",
        env!("CARGO_PKG_VERSION"),
        processor_name(),
        load_average()?,
        process::gateway_binary().display(),
        options.rounds,
        options.time,
    );
    if options.quick {
        println!("\nA quick run: it shows that everything works; its figures mean nothing.");
    }
    if cfg!(debug_assertions) {
        println!("\nA debug build: its figures mean nothing.");
    }
    Ok(())
}

async fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    let run_options = options.run_options()?;
    print_header(&run_options)?;
    let mut aims = Aims::default();
    for part in Part::value_variants() {
        if options.includes(*part) {
            eprintln!("{part:?}, after {:.0} s", begin.elapsed().as_secs_f64());
            part.run(&run_options, &mut aims).await?;
        }
    }
    println!(
        "\n## Aims\n\n{aims}\n\nload average {} after {:.0} s",
        load_average()?,
        begin.elapsed().as_secs_f64()
    );
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
        bare::run(listen, upstream, formats::KEY);
    }
    process::raise_descriptor_limit(options.descriptors())?;
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

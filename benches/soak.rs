//! Measures the memory of open streams, and whether anything leaks in hours of mixed load.

mod bare;
mod connection;
mod formats;
mod metrics;
mod mixed_load;
mod open_streams;
mod process;
mod reloads;
mod setup;
mod stream_memory;

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

/// Two for each stream in the gateway, at the maximum number of streams.
const DESCRIPTORS: u64 = 17_000;

/// Looks for leaks of the gateway, and measures the memory of open streams. All traffic stays on this machine.
///
/// A leak or a missed aim makes the run fail. Without a subcommand every mode runs for a moment, which shows that it works.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench soak -- streams|memory|reloads [OPTIONS]")]
struct Options {
    #[command(subcommand)]
    mode: Option<Mode>,
    #[arg(long, hide = true, global = true)]
    bench: bool,
    /// Run as the bare proxy, listening on the first address and forwarding to the second
    #[arg(long, hide = true, num_args = 2)]
    bare: Option<Vec<SocketAddr>>,
}

#[derive(Subcommand)]
enum Mode {
    /// Streams of every pair of formats for minutes, with errors and clients that cancel
    Streams(mixed_load::StreamsOptions),
    /// Memory of open streams, and of a long one
    Memory(stream_memory::MemoryOptions),
    /// Reloads of random configs under load
    Reloads(reloads::ReloadsOptions),
}

async fn run(options: &Options) -> Result<()> {
    let directory = TempDir::new()?;
    let directory = directory.path();
    match &options.mode {
        Some(Mode::Streams(options)) => mixed_load::run(options, directory).await,
        Some(Mode::Memory(options)) => stream_memory::run(options, directory).await,
        Some(Mode::Reloads(options)) => reloads::run(options, directory).await,
        None => {
            mixed_load::run(&mixed_load::StreamsOptions::quick(), directory).await?;
            stream_memory::run(&stream_memory::MemoryOptions::quick(), directory).await?;
            reloads::run(&reloads::ReloadsOptions::quick(), directory).await
        }
    }
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
    process::raise_descriptor_limit(DESCRIPTORS)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
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

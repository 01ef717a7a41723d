//! Memory of open streams: so many at once, each with content and then silent, next to the same through a bare proxy.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connection::Connection;
use crate::ground::Ground;
use crate::process::{Process, free_addresses, load_average, mebibytes};
use crate::speech::{FORMATS, Format, KEY};

/// What a stream may hold beyond what it holds in the bare proxy.
const AIM: f64 = 40.0;

/// By how much a stream may raise the memory when it is ten times as long, in KiB.
const AIM_OF_LENGTH: u64 = 4 * 1024;

/// So many events have come before a stream counts as open: those before the content, and some content.
const BEGUN: usize = 6;

/// Streams that are being opened at the same time.
const OPENING: usize = 50;

const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Args)]
pub struct Options {
    /// Streams that are open at once
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u16).range(1..=8000))]
    streams: u16,
    /// Client and upstream formats, as in chat:messages
    #[arg(long, value_delimiter = ',', value_parser = parse_pair, default_value = "chat:chat,messages:messages,\
        chat:messages,messages:chat,chat:native,native:responses,responses:chat,responses:messages")]
    pairs: Vec<(Format, Format)>,
    /// Bytes of prompt in each request
    #[arg(long, default_value_t = 1000)]
    prompt: usize,
    /// Seconds between two events of a stream
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=15))]
    pace: u16,
    /// Events of the long stream; a tenth of them are sent before, for comparison
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    events: u32,
}

impl Options {
    pub fn quick() -> Self {
        Self {
            streams: 20,
            pairs: vec![(Format::Chat, Format::Messages)],
            prompt: 100,
            pace: 1,
            events: 1000,
        }
    }
}

fn parse_pair(text: &str) -> Result<(Format, Format)> {
    let format = |name: &str| {
        let found = FORMATS.into_iter().find(|format| format.name() == name);
        found.with_context(|| format!("{name} is no format"))
    };
    let (client, upstream) = text.split_once(':').context("two formats and a colon")?;
    Ok((format(client)?, format(upstream)?))
}

pub async fn run(options: &Options, directory: &Path) -> Result<()> {
    println!(
        "{} streams at once, prompts of {} bytes, load average {}\n",
        options.streams,
        options.prompt,
        load_average()?
    );
    let bare = per_stream(options, directory, None).await?;
    println!("bare pingora, chat: {bare:.1} KiB a stream");
    let mut missed = 0;
    for &pair in &options.pairs {
        let held = per_stream(options, directory, Some(pair)).await?;
        let (beyond, word) = (
            held - bare,
            if held - bare <= AIM { "met" } else { "MISSED" },
        );
        missed += usize::from(beyond > AIM);
        let (client, upstream) = (pair.0.name(), pair.1.name());
        println!(
            "{client} from {upstream}: {held:.1} KiB a stream, {beyond:.1} beyond bare, aim {AIM} {word}"
        );
    }
    for &pair in &options.pairs {
        missed += usize::from(!by_length(options, directory, pair).await?);
    }
    ensure!(missed == 0, "{missed} aims missed");
    Ok(())
}

/// The bare proxy knows one upstream only, and speaks what that speaks.
async fn start(directory: &Path, ground: &Ground, bare: bool) -> Result<Process> {
    if !bare {
        return ground.start_gateway(directory).await;
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--bare").arg(ground.listen.to_string());
    command.arg(ground.mock.to_string());
    let mut process = Process::start("bare", &mut command, directory)?;
    process.wait_until_ready(ground.listen, None).await?;
    Ok(process)
}

/// KiB that each of the open streams holds, in a process that has served nothing else.
async fn per_stream(
    options: &Options,
    directory: &Path,
    pair: Option<(Format, Format)>,
) -> Result<f64> {
    let [mock, listen, admin] = free_addresses()?;
    let ground = Ground {
        mock,
        listen,
        admin,
    };
    let _mock = ground.start_mock(directory).await?;
    let process = start(directory, &ground, pair.is_none()).await?;
    let (client, upstream) = pair.unwrap_or((Format::Chat, Format::Chat));
    let model = Ground::model(upstream);
    let filler = "word ".repeat(options.prompt / 5);
    let short = client.request(listen, &model, "mock:events=5");
    for _ in 0..20 {
        Connection::open(listen).await?.exchange(&short).await?;
    }
    let wish = format!("{filler}mock:events=60 mock:pace={}s", options.pace);
    let request: Arc<[u8]> = client.request(listen, &model, &wish).into();
    let before = process.vitals()?.resident;

    let (opening, begun) = (
        Arc::new(Semaphore::new(OPENING)),
        Arc::new(Semaphore::new(0)),
    );
    let mut streams = JoinSet::new();
    for _ in 0..options.streams {
        let (request, opening, begun) = (request.clone(), opening.clone(), begun.clone());
        streams.spawn(async move {
            let turn = opening.acquire().await?;
            let mut connection = Connection::open(listen).await?;
            let status = connection.ask(&request).await?;
            ensure!(status == 200, "status {status}");
            drop(turn);
            let mut events = 0;
            while let Some(piece) = connection.piece().await? {
                let before = events;
                events += memchr::memmem::find_iter(&piece, b"data: ").count();
                if before < BEGUN && events >= BEGUN {
                    begun.add_permits(1);
                }
            }
            bail!("a stream ended before all were open")
        });
    }
    let all = begun.acquire_many(options.streams.into());
    tokio::select! {
        opened = timeout(PATIENCE, all) => drop(opened.context("not all streams have begun")??),
        Some(ended) = streams.join_next() => { ended??; }
    }
    sleep(Duration::from_secs(1)).await;
    let vitals = process.vitals()?;
    let held = vitals.resident.saturating_sub(before) as f64 / f64::from(options.streams);
    streams.shutdown().await;
    Ok(held)
}

/// Whether a long stream leaves the memory where one of a tenth of its length has left it.
async fn by_length(
    options: &Options,
    directory: &Path,
    (client, upstream): (Format, Format),
) -> Result<bool> {
    let [mock, listen, admin] = free_addresses()?;
    let ground = Ground {
        mock,
        listen,
        admin,
    };
    let _mock = ground.start_mock(directory).await?;
    let process = ground.start_gateway(directory).await?;
    let mut figures = Vec::new();
    for events in [options.events / 10, options.events] {
        let wish = format!("mock:events={events}");
        let request = client.request(listen, &Ground::model(upstream), &wish);
        let mut connection = Connection::open(listen).await?;
        let status = connection.ask(&request).await?;
        ensure!(status == 200, "status {status}");
        let mut bytes = 0;
        while let Some(piece) = connection.piece().await? {
            bytes += piece.len() as u64;
        }
        figures.push((bytes / 1024, process.vitals()?.peak));
    }
    let [(short, low), (long, high)] = figures[..] else {
        bail!("two streams were read");
    };
    let is_met = high - low <= AIM_OF_LENGTH;
    // The last events of this format repeat the text, which a translation has to keep for them.
    let is_judged = client != Format::Responses || client == upstream;
    let word = match (is_judged, is_met) {
        (false, _) => "does not apply",
        (true, true) => "met",
        (true, false) => "MISSED",
    };
    println!(
        "{} from {}: a stream of {:.0} MiB leaves the peak at {:.1} MiB, one of {:.0} MiB at {:.1} MiB, aim {} MiB more {}",
        client.name(),
        upstream.name(),
        mebibytes(short),
        mebibytes(low),
        mebibytes(long),
        mebibytes(high),
        AIM_OF_LENGTH / 1024,
        word
    );
    Ok(is_met || !is_judged)
}

/// The key of the bare proxy is that of the gateway.
pub fn be_bare(listen: std::net::SocketAddr, upstream: std::net::SocketAddr) -> ! {
    crate::bare::run(listen, upstream, KEY)
}

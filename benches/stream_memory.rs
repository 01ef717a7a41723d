//! Measures the memory of many open streams, next to the same through a bare proxy, and of a long one.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::connection::Connection;
use crate::formats::{FORMATS, Format};
use crate::open_streams::{AIM, OpenStreams};
use crate::process::{free_addresses, load_average, mebibytes};
use crate::setup::{ConfigOptions, TestSetup};

/// The memory that a stream of ten times the length may need beyond a shorter one, in KiB.
const LONG_STREAM_AIM: u64 = 4 * 1024;

#[derive(Args)]
pub struct MemoryOptions {
    /// Number of concurrent streams
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
    /// Events of the long stream; one of a tenth of them is sent before, for comparison
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    events: u32,
}

impl MemoryOptions {
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
        let format = FORMATS.into_iter().find(|format| format.name() == name);
        format.with_context(|| format!("unknown format {name}"))
    };
    let (client, upstream) = text
        .split_once(':')
        .context("must be two formats and a colon between them")?;
    Ok((format(client)?, format(upstream)?))
}

pub async fn run(options: &MemoryOptions, directory: &Path) -> Result<()> {
    println!(
        "{} streams at once, prompts of {} bytes, load average {}\n",
        options.streams,
        options.prompt,
        load_average()?
    );
    let streams = OpenStreams {
        count: options.streams,
        prompt: options.prompt,
        pace: Duration::from_secs(options.pace.into()),
    };
    let bare = streams.measure_memory(directory, None).await?;
    println!("bare pingora, chat: {bare:.1} KiB a stream");
    let mut missed = 0;
    for &pair in &options.pairs {
        let kibibytes = streams.measure_memory(directory, Some(pair)).await?;
        let (beyond, verdict) = (
            kibibytes - bare,
            if kibibytes - bare <= AIM {
                "met"
            } else {
                "MISSED"
            },
        );
        missed += usize::from(beyond > AIM);
        let (client, upstream) = (pair.0.name(), pair.1.name());
        println!(
            "{client} from {upstream}: {kibibytes:.1} KiB a stream, {beyond:.1} beyond bare, aim {AIM} {verdict}"
        );
    }
    for &pair in &options.pairs {
        missed += usize::from(!check_long_stream(options, directory, pair).await?);
    }
    ensure!(missed == 0, "{missed} aims missed");
    Ok(())
}

/// Returns whether the peak memory after a long stream is nearly that after one of a tenth of its length.
async fn check_long_stream(
    options: &MemoryOptions,
    directory: &Path,
    (client, upstream): (Format, Format),
) -> Result<bool> {
    let [mock, listen, admin] = free_addresses()?;
    let setup = TestSetup {
        mock,
        listen,
        admin,
    };
    let _mock = setup.start_mock(directory).await?;
    let process = setup
        .start_gateway(directory, &setup.config(&ConfigOptions::SOAK))
        .await?;
    let mut results = Vec::new();
    for events in [options.events / 10, options.events] {
        let directives = format!("mock:events={events}");
        let request =
            client.encode_stream_request(listen, &TestSetup::model(upstream), &directives);
        let mut connection = Connection::open(listen).await?;
        let status = connection.send_request(&request).await?;
        ensure!(status == 200, "status {status}");
        let mut bytes = 0;
        while let Some(chunk) = connection.read_body().await? {
            bytes += chunk.len() as u64;
        }
        results.push((bytes / 1024, process.resource_usage()?.peak));
    }
    let [(short, low), (long, high)] = results[..] else {
        bail!("two streams were read");
    };
    let is_met = high - low <= LONG_STREAM_AIM;
    // The last events of the responses format repeat the whole text, so a translation has to keep it.
    let is_judged = client != Format::Responses || client == upstream;
    let verdict = match (is_judged, is_met) {
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
        LONG_STREAM_AIM / 1024,
        verdict
    );
    Ok(is_met || !is_judged)
}

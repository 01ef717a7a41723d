//! Measures the memory of open streams: many at once, each with content and then silent, next to the same through a bare proxy.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::connection::Connection;
use crate::formats::{FORMATS, Format};
use crate::open_streams::{AIM, Streams};
use crate::process::{free_addresses, load_average, mebibytes};
use crate::setup::{Ground, Shape};

/// By how much a stream may raise the memory when it is ten times as long, in KiB.
const AIM_OF_LENGTH: u64 = 4 * 1024;

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
    let streams = Streams {
        count: options.streams,
        prompt: options.prompt,
        pace: Duration::from_secs(options.pace.into()),
    };
    let bare = streams.held(directory, None).await?;
    println!("bare pingora, chat: {bare:.1} KiB a stream");
    let mut missed = 0;
    for &pair in &options.pairs {
        let held = streams.held(directory, Some(pair)).await?;
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
    let process = ground
        .start_gateway(directory, &ground.config(&Shape::SOAK))
        .await?;
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

//! Measures the memory of processes, idle and under load, and that of an open stream.

use std::pin::pin;
use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use super::RunOptions;
use crate::aims::{Aim, Aims};
use crate::formats::{FORMATS, Format, KEY};
use crate::open_streams::OpenStreams;
use crate::process::mebibytes;
use crate::round::{Variant, measure};
use crate::setup::TestSetup;
use crate::table::{format_number, new_table};
use crate::targets::{BARE_MIMALLOC, Target, Targets};
use crate::workload::{Request, Workload};

/// How often the memory of a process under load is read.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub async fn run(options: &RunOptions, aims: &mut Aims) -> Result<()> {
    println!("\n## Memory\n");
    measure_processes(options).await?;
    measure_open_streams(options, aims).await
}

/// Measures every proxy, idle and under load; clients of the bare ones use the upstream's format.
async fn measure_processes(options: &RunOptions) -> Result<()> {
    let targets = Targets::start(options, "memory").await?;
    let upstream = Format::Messages;
    let mut variants = vec![
        ("bare pingora", &targets.bare, upstream),
        (BARE_MIMALLOC, &targets.bare_mimalloc, upstream),
        ("omniglot, chat → messages", &targets.omniglot, Format::Chat),
    ];
    variants.extend(
        targets
            .nginx
            .as_ref()
            .map(|nginx| ("nginx, all its processes", nginx, upstream)),
    );
    let mut table = new_table(
        1,
        &[
            "process",
            "idle MiB",
            "under load MiB",
            "peak MiB",
            "threads",
        ],
    );
    let resident = |target: &Target| anyhow::Ok(target.process.resource_usage()?.resident);
    for (title, target, client) in variants {
        eprintln!("memory, {title}");
        let idle = resident(target)?;
        let mut under_load = idle;
        for workload in [Workload::json(), Workload::paced(options.scaled(50, 5))] {
            let request = Request::new(
                &workload,
                client,
                &TestSetup::model(upstream),
                KEY,
                target.address,
            );
            let variant = Variant {
                title: title.to_owned(),
                target,
                requests: vec![request],
                connections: options.scaled(256, 8),
            };
            let mut load = pin!(measure(vec![variant], options.scaled(4, 1), options.time));
            loop {
                tokio::select! {
                    ended = &mut load => break drop(ended?),
                    () = sleep(POLL_INTERVAL) => under_load = under_load.max(resident(target)?),
                }
            }
        }
        let usage = target.process.resource_usage()?;
        table.add_row([
            title.to_owned(),
            format_number(Some(mebibytes(idle)), 1),
            format_number(Some(mebibytes(under_load)), 1),
            format_number(Some(mebibytes(usage.peak)), 1),
            usage.threads.to_string(),
        ]);
    }
    println!("{table}\n");
    Ok(())
}

/// Measures the memory of an open stream, for every translated pair of formats.
async fn measure_open_streams(options: &RunOptions, aims: &mut Aims) -> Result<()> {
    let streams = OpenStreams {
        count: options.scaled(1000, 20),
        prompt: 1000,
        pace: Duration::from_millis(options.scaled(500, 50)),
    };
    let directory = options.create_directory("memory-bare")?;
    let bare = streams.measure_memory(&directory, None).await?;
    let title = format!("{} open streams", streams.count);
    let mut table = new_table(1, &[&title, "KiB beyond bare", "KiB each"]);
    table.add_row([
        "bare pingora".to_owned(),
        "0.0".to_owned(),
        format_number(Some(bare), 1),
    ]);
    let all = FORMATS.map(|client| FORMATS.map(|upstream| (client, upstream)));
    let translated = all
        .into_iter()
        .flatten()
        .filter(|(client, upstream)| client != upstream);
    for (client, upstream) in translated.take(options.scaled(12, 1)) {
        let pair = format!("{} → {}", client.name(), upstream.name());
        eprintln!("memory of open streams, {pair}");
        let directory =
            options.create_directory(&format!("memory-{}-{}", client.name(), upstream.name()))?;
        let kibibytes = streams
            .measure_memory(&directory, Some((client, upstream)))
            .await?;
        table.add_row([
            pair.clone(),
            format_number(Some(kibibytes - bare), 1),
            format_number(Some(kibibytes), 1),
        ]);
        aims.judge(Aim::OpenStream, kibibytes - bare, pair);
    }
    println!("{table}");
    Ok(())
}

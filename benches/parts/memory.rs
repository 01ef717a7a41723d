//! Measures memory: of idle processes, under load, and of every open stream.

use std::pin::pin;
use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use super::Terms;
use crate::aims::{Aim, Aims};
use crate::formats::{FORMATS, Format, KEY};
use crate::open_streams::Streams;
use crate::process::mebibytes;
use crate::round::{Entry, measure};
use crate::setup::Ground;
use crate::table::{figure, table};
use crate::targets::{BARE_MIMALLOC, Field, Target};
use crate::work::{Request, Work};

/// Between two looks at a process under load.
const LOOK: Duration = Duration::from_millis(20);

pub async fn run(terms: &Terms, aims: &mut Aims) -> Result<()> {
    println!("\n## Memory\n");
    of_processes(terms).await?;
    of_streams(terms, aims).await
}

/// What each leg is asked for under load; the bare ones speak what the upstream speaks.
async fn of_processes(terms: &Terms) -> Result<()> {
    let field = Field::start(terms, "memory").await?;
    let upstream = Format::Messages;
    let mut legs = vec![
        ("bare pingora", &field.bare, upstream),
        (BARE_MIMALLOC, &field.bare_mimalloc, upstream),
        ("omniglot, chat → messages", &field.omniglot, Format::Chat),
    ];
    legs.extend(
        field
            .nginx
            .as_ref()
            .map(|nginx| ("nginx, all its processes", nginx, upstream)),
    );
    let mut table = table(
        1,
        &[
            "process",
            "idle MiB",
            "under load MiB",
            "ever MiB",
            "threads",
        ],
    );
    let resident = |target: &Target| anyhow::Ok(target.process.vitals()?.resident);
    for (title, target, client) in legs {
        eprintln!("memory, {title}");
        let idle = resident(target)?;
        let mut under_load = idle;
        for work in [Work::json(), Work::paced(terms.scaled(50, 5))] {
            let request =
                Request::new(&work, client, &Ground::model(upstream), KEY, target.address);
            let entry = Entry {
                title: title.to_owned(),
                target,
                requests: vec![request],
                connections: terms.scaled(256, 8),
            };
            let mut load = pin!(measure(vec![entry], terms.scaled(4, 1), terms.time));
            loop {
                tokio::select! {
                    ended = &mut load => break drop(ended?),
                    () = sleep(LOOK) => under_load = under_load.max(resident(target)?),
                }
            }
        }
        let vitals = target.process.vitals()?;
        table.add_row([
            title.to_owned(),
            figure(Some(mebibytes(idle)), 1),
            figure(Some(mebibytes(under_load)), 1),
            figure(Some(mebibytes(vitals.peak)), 1),
            vitals.threads.to_string(),
        ]);
    }
    println!("{table}\n");
    Ok(())
}

async fn of_streams(terms: &Terms, aims: &mut Aims) -> Result<()> {
    let streams = Streams {
        count: terms.scaled(1000, 20),
        prompt: 1000,
        pace: Duration::from_millis(terms.scaled(500, 50)),
    };
    let bare = streams.held(&terms.room("memory-bare")?, None).await?;
    let title = format!("{} open streams", streams.count);
    let mut table = table(1, &[&title, "KiB beyond bare", "KiB each"]);
    table.add_row([
        "bare pingora".to_owned(),
        "0.0".to_owned(),
        figure(Some(bare), 1),
    ]);
    let all = FORMATS.map(|client| FORMATS.map(|upstream| (client, upstream)));
    let translated = all
        .into_iter()
        .flatten()
        .filter(|(client, upstream)| client != upstream);
    for (client, upstream) in translated.take(terms.scaled(12, 1)) {
        let pair = format!("{} → {}", client.name(), upstream.name());
        eprintln!("memory of open streams, {pair}");
        let room = terms.room(&format!("memory-{}-{}", client.name(), upstream.name()))?;
        let held = streams.held(&room, Some((client, upstream))).await?;
        table.add_row([
            pair.clone(),
            figure(Some(held - bare), 1),
            figure(Some(held), 1),
        ]);
        aims.judge(Aim::OpenStream, held - bare, pair);
    }
    println!("{table}");
    Ok(())
}

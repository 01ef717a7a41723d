//! Scale: one worker thread against one for each core.

use std::path::Path;

use anyhow::{Result, bail};

use super::Terms;
use crate::cores::OneCore;
use crate::ground::Ground;
use crate::leg::{SHAPE, Target, start_bare, start_mock, start_omniglot};
use crate::round::{Entry, measure};
use crate::speech::{Format, KEY};
use crate::table::{figure, table};
use crate::work::{Request, Work};

pub async fn run(terms: &Terms) -> Result<()> {
    eprintln!("threads");
    let cores = std::thread::available_parallelism()?;
    let room = terms.room("threads")?;
    let mock = start_mock(&room).await?;
    let (bare_one, ours_one) = {
        let core = OneCore::hold()?;
        let (bare, ours) = proxies(&mock, &terms.room("threads-one")?).await?;
        core.lift(bare.process.id()?)?;
        core.lift(ours.process.id()?)?;
        (bare, ours)
    };
    let (bare_all, ours_all) = proxies(&mock, &terms.room("threads-all")?).await?;
    let mut table = table(
        1,
        &[
            "JSON",
            "CPU to one thread",
            "requests/s to one thread",
            "CPU µs/request",
            "with one",
            "requests/s",
            "with one",
        ],
    );
    let legs = [
        ("bare pingora, chat", &bare_one, &bare_all, Format::Chat),
        ("omniglot, chat → chat", &ours_one, &ours_all, Format::Chat),
        (
            "omniglot, chat → messages",
            &ours_one,
            &ours_all,
            Format::Messages,
        ),
    ];
    for (title, one, all, upstream) in legs {
        let entry = |target: &'static str, found| Entry {
            title: format!("{title}, {target}"),
            target: found,
            requests: vec![request(found, upstream)],
            connections: terms.connections * 4,
        };
        let entries = vec![entry("one thread", one), entry("all threads", all)];
        let found = measure(entries, terms.rounds, terms.time * 2).await?;
        let [one, all] = &found[..] else {
            bail!("a leg without rounds");
        };
        table.add_row([
            title.to_owned(),
            all.cpu_ratio(one).ratio(),
            all.ratio(one, |sample| sample.requests_per_second).ratio(),
            figure(Some(all.cpu()), 1),
            figure(Some(one.cpu()), 1),
            figure(Some(all.speed()), 0),
            figure(Some(one.speed()), 0),
        ]);
    }
    println!(
        "\n## Scale: {cores} worker threads against one\n\n{table}\n\n\
         The load and the mock run on the same {cores} cores: requests/s show what is left of these, CPU time what a thread more costs."
    );
    for (title, target) in [("one", &ours_one), ("all", &ours_all)] {
        println!("omniglot, {title}: {}", target.process.vitals()?);
    }
    Ok(())
}

async fn proxies(mock: &Target, room: &Path) -> Result<(Target, Target)> {
    let bare = start_bare(mock.address, room).await?;
    let ours = start_omniglot(mock.address, room, &SHAPE, "").await?;
    Ok((bare, ours))
}

fn request(target: &Target, upstream: Format) -> Request {
    let model = Ground::model(upstream);
    Request::new(&Work::json(), Format::Chat, &model, KEY, target.address)
}

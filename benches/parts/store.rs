//! What a store adds: receipts in a journal and a database behind the same requests.

use anyhow::Result;

use super::Terms;
use crate::aims::{Aim, Aims};
use crate::ground::Ground;
use crate::leg::{SHAPE, start_bare, start_mock, start_omniglot};
use crate::round::{Entry, measure};
use crate::speech::{Format, KEY};
use crate::table::{figure, table};
use crate::work::{Request, Work};

pub async fn run(terms: &Terms, aims: &mut Aims) -> Result<()> {
    let room = terms.room("store")?;
    let mock = start_mock(&room).await?;
    let upstream = mock.address;
    let bare = start_bare(upstream, &room).await?;
    let without = start_omniglot(upstream, &room, &SHAPE, "").await?;
    let inside = terms.room("store-inside")?;
    let (database, journal) = (inside.join("store.db"), inside.join("journal"));
    let added = format!(
        "store: \"sqlite:{}\"\njournal: {{path: {journal:?}}}\n",
        database.display()
    );
    let with = start_omniglot(upstream, &inside, &SHAPE, &added).await?;
    let mut table = table(
        1,
        &[
            "chat → chat, with a store",
            "CPU to omniglot without",
            "CPU to bare",
            "CPU µs/request",
            "without",
            "bare",
            "requests/s",
            "without",
            "bare",
        ],
    );
    let events = terms.scaled(50, 5);
    let works = [Work::json(), Work::stream(events), Work::paced(events)];
    for work in works {
        eprintln!("store, {}", work.title);
        let entry = |title: &str, target| Entry {
            title: format!("{title}, {}", work.title),
            target,
            requests: vec![Request::new(
                &work,
                Format::Chat,
                &Ground::model(Format::Chat),
                KEY,
                target.address,
            )],
            connections: terms.connections,
        };
        let entries = vec![
            entry("bare pingora", &bare),
            entry("omniglot", &without),
            entry("omniglot with a store", &with),
        ];
        let found = measure(entries, terms.rounds, terms.time * 2).await?;
        let [bare, without, with] = &found[..] else {
            anyhow::bail!("a leg without rounds");
        };
        let added = with.cpu_ratio(without);
        table.add_row([
            work.title.clone(),
            added.ratio(),
            with.cpu_ratio(bare).ratio(),
            figure(Some(with.cpu()), 1),
            figure(Some(without.cpu()), 1),
            figure(Some(bare.cpu()), 1),
            figure(Some(with.speed()), 0),
            figure(Some(without.speed()), 0),
            figure(Some(bare.speed()), 0),
        ]);
        aims.judge(Aim::Store, added.median, work.title);
    }
    println!("\n## With a store\n\n{table}");
    Ok(())
}

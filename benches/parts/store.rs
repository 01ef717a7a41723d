//! What money adds: a cap and prices; with them receipts in a journal; and, when answers are out, rows in a database.

use std::time::Duration;

use anyhow::Result;

use super::Terms;
use crate::aims::{Aim, Aims};
use crate::ground::{Ground, Shape};
use crate::leg::{SHAPE, start_bare, start_mock, start_omniglot};
use crate::round::{Entry, Sample, measure_with_rest};
use crate::speech::{Format, KEY};
use crate::table::{figure, table};
use crate::work::{Request, Work};

/// Receipts gather for half a second before they are carried to the database.
const REST: Duration = Duration::from_millis(800);

pub async fn run(terms: &Terms, aims: &mut Aims) -> Result<()> {
    let room = terms.room("store")?;
    let mock = start_mock(&room).await?;
    let upstream = mock.address;
    let bare = start_bare(upstream, &room).await?;
    let plain = Shape {
        counts: false,
        ..SHAPE
    };
    let outside = terms.room("store-off")?;
    let off = start_omniglot(upstream, &outside, &plain, "").await?;
    let counting = start_omniglot(upstream, &room, &SHAPE, "").await?;
    let inside = terms.room("store-inside")?;
    let (database, journal) = (inside.join("store.db"), inside.join("journal"));
    let added = format!(
        "store: \"sqlite:{}\"\njournal: {{path: {journal:?}}}\n",
        database.display()
    );
    let stored = start_omniglot(upstream, &inside, &SHAPE, &added).await?;
    let mut table = table(
        1,
        &[
            "chat → chat",
            "CPU of cap and prices to none",
            "and the journal",
            "and what is done later",
            "CPU µs/request, none",
            "cap and prices",
            "and the journal",
            "later",
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
            entry("omniglot without money", &off),
            entry("omniglot", &counting),
            entry("omniglot with a store", &stored),
        ];
        let found = measure_with_rest(entries, terms.rounds, terms.time * 4, REST).await?;
        let [bare, off, counting, stored] = &found[..] else {
            anyhow::bail!("a leg without rounds");
        };
        let counted = counting.cpu_ratio(off);
        let written = stored.ratio(off, Sample::answering);
        table.add_row([
            work.title.clone(),
            counted.ratio(),
            written.ratio(),
            stored.cpu_ratio(off).ratio(),
            figure(Some(off.cpu()), 1),
            figure(Some(counting.cpu()), 1),
            figure(Some(stored.median(Sample::answering)), 1),
            figure(Some(stored.median(|sample| sample.later_microseconds)), 1),
            figure(Some(bare.cpu()), 1),
        ]);
        aims.judge(Aim::Money, counted.median, work.title.clone());
        aims.judge(Aim::Journal, written.median, work.title);
    }
    println!("\n## Money, and a store\n\n{table}");
    Ok(())
}

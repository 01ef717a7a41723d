//! Measures what accounting adds: a cap and prices; usage records in a journal; and rows in a database.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;

use super::Terms;
use crate::aims::{Aim, Aims};
use crate::formats::{Format, KEY};
use crate::round::{Entry, Rounds, Sample, measure_with_rest};
use crate::setup::{Ground, Shape};
use crate::table::{figure, table};
use crate::targets::{SHAPE, Target, start_bare, start_mock, start_omniglot};
use crate::work::{Request, Work};

/// Receipts gather for half a second before they are carried to the database.
const REST: Duration = Duration::from_millis(800);

/// The legs, each a process of its own.
struct Legs {
    bare: Target,
    off: Target,
    counting: Target,
    stored: Target,
}

impl Legs {
    async fn start(upstream: SocketAddr, terms: &Terms, name: &str) -> Result<Self> {
        let room = |leg: &str| terms.room(&format!("{name}-{leg}"));
        let plain = Shape {
            counts: false,
            ..SHAPE
        };
        let inside = room("stored")?;
        let (database, journal) = (inside.join("store.db"), inside.join("journal"));
        let added = format!(
            "store: \"sqlite:{}\"\njournal: {{path: {journal:?}}}\n",
            database.display()
        );
        Ok(Self {
            bare: start_bare(upstream, &room("bare")?).await?,
            off: start_omniglot(upstream, &room("off")?, &plain, "").await?,
            counting: start_omniglot(upstream, &room("counting")?, &SHAPE, "").await?,
            stored: start_omniglot(upstream, &inside, &SHAPE, &added).await?,
        })
    }

    fn entries<'a>(&'a self, work: &Work, terms: &Terms) -> Vec<Entry<'a>> {
        let entry = |title: &str, target: &'a Target| Entry {
            title: format!("{title}, {}", work.title),
            target,
            requests: vec![Request::new(
                work,
                Format::Chat,
                &Ground::model(Format::Chat),
                KEY,
                target.address,
            )],
            connections: terms.connections,
        };
        vec![
            entry("bare pingora", &self.bare),
            entry("omniglot without money", &self.off),
            entry("omniglot", &self.counting),
            entry("omniglot with a store", &self.stored),
        ]
    }
}

pub async fn run(terms: &Terms, aims: &mut Aims) -> Result<()> {
    let mock = start_mock(&terms.room("store")?).await?;
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
    let mut number = 0;
    for work in works {
        eprintln!("store, {}", work.title);
        let mut found: [Rounds; 4] = Default::default();
        for _ in 0..terms.scaled(terms.rounds * 2, 1) {
            number += 1;
            // Two processes of the same program differ by a few per cent, by where their memory happens to lie.
            let legs = Legs::start(mock.address, terms, &format!("store-{number}")).await?;
            let round = measure_with_rest(legs.entries(&work, terms), 1, terms.time * 2, REST);
            for (rounds, round) in found.iter_mut().zip(round.await?) {
                rounds.append(round);
            }
        }
        let [bare, off, counting, stored] = &found;
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

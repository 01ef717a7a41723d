//! Measures a request with one key, model and upstream, and with ten thousand of each.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Terms;
use crate::formats::{Format, KEY};
use crate::process::mebibytes;
use crate::round::{Entry, Rounds, measure};
use crate::setup::{Ground, Shape, other};
use crate::table::{figure, table};
use crate::targets::{Target, start_mock, start_omniglot};
use crate::work::{Request, Work};

const ONE: Shape = Shape {
    formats: &[Format::Chat],
    places: 1,
    others: 0,
    other_places: 0,
    keeps_conversations: true,
    counts: true,
};

/// Upstreams that a team has, where it has thousands of models and keys.
const PLACES: usize = 16;

/// Processes that differ in what they know; each is asked for one thing, and for all in turn.
struct Legs {
    few: Target,
    many: Target,
    everywhere: Target,
    /// How long the one with many took to begin.
    start: Duration,
}

impl Legs {
    async fn start(upstream: SocketAddr, terms: &Terms, name: &str, count: usize) -> Result<Self> {
        let room = |leg: &str| terms.room(&format!("{name}-{leg}"));
        let with = |places| Shape {
            others: count - 1,
            other_places: places,
            ..ONE
        };
        let few = start_omniglot(upstream, &room("few")?, &ONE, "").await?;
        let begin = Instant::now();
        let many = start_omniglot(upstream, &room("many")?, &with(PLACES), "").await?;
        let start = begin.elapsed();
        let everywhere = with(count - 1);
        let everywhere = start_omniglot(upstream, &room("everywhere")?, &everywhere, "").await?;
        Ok(Self {
            few,
            many,
            everywhere,
            start,
        })
    }

    fn entries(&self, terms: &Terms, count: usize) -> [Entry<'_>; 5] {
        let ask = |key: &str, model: &str, target: &Target| {
            Request::new(&Work::json(), Format::Chat, model, key, target.address)
        };
        let one = |target: &Target| vec![ask(KEY, &Ground::model(Format::Chat), target)];
        let in_turn = |target: &Target| {
            let ask = |number| {
                let name = other(number);
                ask(&format!("key-of-{name}"), &name, target)
            };
            (0..count - 1).map(ask).collect()
        };
        let (many, everywhere) = (&self.many, &self.everywhere);
        let on_few = format!("{count} keys and models on {PLACES} upstreams");
        let on_many = format!("{count} keys, models and upstreams");
        [
            ("one of each".to_owned(), &self.few, one(&self.few)),
            (format!("{on_few}, one asked"), many, one(many)),
            (format!("{on_few}, all in turn"), many, in_turn(many)),
            (format!("{on_many}, one asked"), everywhere, one(everywhere)),
            (
                format!("{on_many}, all in turn"),
                everywhere,
                in_turn(everywhere),
            ),
        ]
        .map(|(title, target, requests)| Entry {
            title,
            target,
            requests,
            connections: terms.connections,
        })
    }
}

pub async fn run(terms: &Terms) -> Result<()> {
    let count = terms.scaled(10_000, 200);
    let mock = start_mock(&terms.room("catalog")?).await?;
    let (mut found, mut titles): ([Rounds; 5], _) = (Default::default(), Vec::new());
    let (mut start, mut resident) = (Duration::MAX, 0);
    for number in 1..=terms.rounds {
        eprintln!("catalog, round {number}");
        // Two processes of the same program differ by a few per cent, by where their memory happens to lie.
        let legs = Legs::start(mock.address, terms, &format!("catalog-{number}"), count).await?;
        let entries = legs.entries(terms, count);
        titles = entries.iter().map(|entry| entry.title.clone()).collect();
        let round = measure(entries.into(), 1, terms.time * 2).await?;
        for (rounds, round) in found.iter_mut().zip(round) {
            rounds.append(round);
        }
        start = start.min(legs.start);
        resident = legs.many.process.vitals()?.resident;
    }
    let header = [
        "keys, models and upstreams",
        "CPU to one of each",
        "CPU µs/request",
        "requests/s",
    ];
    let mut table = table(1, &header);
    for (title, rounds) in titles.into_iter().zip(&found) {
        table.add_row([
            title,
            rounds.cpu_ratio(&found[0]).ratio(),
            figure(Some(rounds.cpu()), 1),
            figure(Some(rounds.speed()), 0),
        ]);
    }
    println!(
        "\n## Scale: keys, models and upstreams\n\n{table}\n\n{count} keys and models on {PLACES} upstreams: ready after {:.0} ms, {:.1} MiB resident after the load",
        start.as_secs_f64() * 1e3,
        mebibytes(resident)
    );
    Ok(())
}

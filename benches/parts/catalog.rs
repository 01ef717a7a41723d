//! Scale: what a request costs with one key, model and upstream, and with ten thousand of each.

use std::time::Instant;

use anyhow::Result;

use super::Terms;
use crate::ground::{Ground, Shape, other};
use crate::leg::{Target, start_mock, start_omniglot};
use crate::process::mebibytes;
use crate::round::{Entry, measure};
use crate::speech::{Format, KEY};
use crate::table::{figure, table};
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

pub async fn run(terms: &Terms) -> Result<()> {
    eprintln!("catalog");
    let count = terms.scaled(10_000, 200);
    let room = terms.room("catalog")?;
    let mock = start_mock(&room).await?;
    let few = start_omniglot(mock.address, &room, &ONE, "").await?;
    let start_many = async |room, places| {
        let shape = Shape {
            others: count - 1,
            other_places: places,
            ..ONE
        };
        start_omniglot(mock.address, &terms.room(room)?, &shape, "").await
    };
    let begin = Instant::now();
    let many = start_many("catalog-many", PLACES).await?;
    let start = begin.elapsed();
    let everywhere = start_many("catalog-everywhere", count - 1).await?;
    let work = Work::json();
    let model = Ground::model(Format::Chat);
    let ask = |key: &str, model: &str, target: &Target| {
        Request::new(&work, Format::Chat, model, key, target.address)
    };
    let one = |target: &Target| vec![ask(KEY, &model, target)];
    let in_turn = |target: &Target| {
        let ask = |number| {
            let name = other(number);
            ask(&format!("key-of-{name}"), &name, target)
        };
        (0..count - 1).map(ask).collect()
    };
    let legs = [
        ("one of each".to_owned(), &few, one(&few)),
        (
            format!("{count} keys and models, one asked"),
            &many,
            one(&many),
        ),
        (
            format!("{count} keys and models on {PLACES} upstreams, all in turn"),
            &many,
            in_turn(&many),
        ),
        (
            format!("{count} keys, models and upstreams, one asked"),
            &everywhere,
            one(&everywhere),
        ),
        (
            format!("{count} keys, models and upstreams, all in turn"),
            &everywhere,
            in_turn(&everywhere),
        ),
    ];
    let titles: Vec<String> = legs.iter().map(|(title, ..)| title.clone()).collect();
    let entries = legs.map(|(title, target, requests)| Entry {
        title,
        target,
        requests,
        connections: terms.connections,
    });
    let found = measure(entries.into(), terms.rounds, terms.time * 2).await?;
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
        "\n## Scale: keys, models and upstreams\n\n{table}\n\n{count} keys and models: ready after {:.0} ms, {:.1} MiB resident after the load",
        start.as_secs_f64() * 1e3,
        mebibytes(many.process.vitals()?.resident)
    );
    Ok(())
}

//! Scale: what a request costs with one key, upstream and model, and with ten thousand of each.

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
    keeps_conversations: true,
    counts: true,
};

pub async fn run(terms: &Terms) -> Result<()> {
    eprintln!("catalog");
    let count = terms.scaled(10_000, 200);
    let room = terms.room("catalog")?;
    let mock = start_mock(&room).await?;
    let few = start_omniglot(mock.address, &room, &ONE, "").await?;
    let shape = Shape {
        others: count - 1,
        ..ONE
    };
    let begin = Instant::now();
    let many = start_omniglot(mock.address, &terms.room("catalog-many")?, &shape, "").await?;
    let start = begin.elapsed();
    let work = Work::json();
    let model = Ground::model(Format::Chat);
    let ask = |key: &str, model: &str, target: &Target| {
        Request::new(&work, Format::Chat, model, key, target.address)
    };
    let in_turn = |number: usize| {
        let name = other(number);
        ask(&format!("key-of-{name}"), &name, &many)
    };
    let entry = |title: String, target, requests| Entry {
        title,
        target,
        requests,
        connections: terms.connections,
    };
    let entries = vec![
        entry("one of each".to_owned(), &few, vec![ask(KEY, &model, &few)]),
        entry(
            format!("{count} of each, one of them asked"),
            &many,
            vec![ask(KEY, &model, &many)],
        ),
        entry(
            format!("{count} of each, all asked in turn"),
            &many,
            (0..count - 1).map(in_turn).collect(),
        ),
    ];
    let titles: Vec<String> = entries.iter().map(|entry| entry.title.clone()).collect();
    let found = measure(entries, terms.rounds, terms.time * 2).await?;
    let header = [
        "keys, upstreams and models",
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
        "\n## Scale: keys, upstreams and models\n\n{table}\n\n{count} of each: ready after {:.0} ms, {:.1} MiB resident after the load",
        start.as_secs_f64() * 1e3,
        mebibytes(many.process.vitals()?.resident)
    );
    Ok(())
}

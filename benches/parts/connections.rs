//! Measures a request over one connection, and over thousands.

use anyhow::Result;

use super::Terms;
use crate::formats::{Format, KEY};
use crate::round::{Entry, measure};
use crate::setup::Ground;
use crate::table::{figure, table};
use crate::targets::Field;
use crate::work::{Request, Work};

const COUNTS: [u16; 5] = [1, 16, 128, 512, 2000];

pub async fn run(terms: &Terms) -> Result<()> {
    eprintln!("connections");
    let field = Field::start(terms, "connections").await?;
    let counts: Vec<u16> = terms.scaled(COUNTS.to_vec(), vec![1, 32]);
    let mut legs = vec![
        ("bare pingora, chat", &field.bare, Format::Chat),
        ("omniglot, chat → chat", &field.omniglot, Format::Chat),
        (
            "omniglot, chat → messages",
            &field.omniglot,
            Format::Messages,
        ),
    ];
    let nginx = field.nginx.as_ref();
    legs.extend(nginx.map(|nginx| ("nginx, chat", nginx, Format::Chat)));
    let mut entries = Vec::new();
    for &connections in &counts {
        for &(title, target, upstream) in &legs {
            let model = Ground::model(upstream);
            entries.push(Entry {
                title: format!("{title}, {connections} connections"),
                target,
                requests: vec![Request::new(
                    &Work::json(),
                    Format::Chat,
                    &model,
                    KEY,
                    target.address,
                )],
                connections,
            });
        }
    }
    let found = measure(entries, terms.rounds, terms.time).await?;
    let mut table = table(
        1,
        &[
            "JSON",
            "connections",
            "CPU to that of 16 connections",
            "CPU to bare",
            "CPU µs/request",
            "requests/s",
        ],
    );
    let middle = usize::from(counts.len() > 1);
    for (number, (title, ..)) in legs.iter().enumerate() {
        for (place, connections) in counts.iter().enumerate() {
            let group = &found[place * legs.len()..][..legs.len()];
            let rounds = &group[number];
            table.add_row([
                (*title).to_owned(),
                connections.to_string(),
                rounds
                    .cpu_ratio(&found[middle * legs.len() + number])
                    .ratio(),
                rounds.cpu_ratio(&group[0]).ratio(),
                figure(Some(rounds.cpu()), 1),
                figure(Some(rounds.speed()), 0),
            ]);
        }
    }
    println!("\n## Scale: connections\n\n{table}");
    Ok(())
}

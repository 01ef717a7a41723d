//! Measures requests over one connection, and over thousands.

use anyhow::Result;

use super::RunOptions;
use crate::formats::{Format, KEY};
use crate::round::{Variant, measure};
use crate::setup::TestSetup;
use crate::table::{format_number, new_table};
use crate::targets::Targets;
use crate::workload::{Request, Workload};

const COUNTS: [u16; 5] = [1, 16, 128, 512, 2000];

pub async fn run(options: &RunOptions) -> Result<()> {
    eprintln!("connections");
    let targets = Targets::start(options, "connections").await?;
    let counts: Vec<u16> = options.scaled(COUNTS.to_vec(), vec![1, 32]);
    let mut proxies = vec![
        ("bare pingora, chat", &targets.bare, Format::Chat),
        ("omniglot, chat → chat", &targets.omniglot, Format::Chat),
        (
            "omniglot, chat → messages",
            &targets.omniglot,
            Format::Messages,
        ),
    ];
    let nginx = targets.nginx.as_ref();
    proxies.extend(nginx.map(|nginx| ("nginx, chat", nginx, Format::Chat)));
    let mut variants = Vec::new();
    for &connections in &counts {
        for &(title, target, upstream) in &proxies {
            let model = TestSetup::model(upstream);
            variants.push(Variant {
                title: format!("{title}, {connections} connections"),
                target,
                requests: vec![Request::new(
                    &Workload::json(),
                    Format::Chat,
                    &model,
                    KEY,
                    target.address,
                )],
                connections,
            });
        }
    }
    let results = measure(variants, options.rounds, options.time).await?;
    let mut table = new_table(
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
    for (number, (title, ..)) in proxies.iter().enumerate() {
        for (index, connections) in counts.iter().enumerate() {
            let group = &results[index * proxies.len()..][..proxies.len()];
            let rounds = &group[number];
            table.add_row([
                (*title).to_owned(),
                connections.to_string(),
                rounds
                    .cpu_ratio(&results[middle * proxies.len() + number])
                    .format_ratio(),
                rounds.cpu_ratio(&group[0]).format_ratio(),
                format_number(Some(rounds.cpu()), 1),
                format_number(Some(rounds.throughput()), 0),
            ]);
        }
    }
    println!("\n## Scale: connections\n\n{table}");
    Ok(())
}

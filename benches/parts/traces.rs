//! Measures the cost of traces: none, of one request in a hundred, and of all.

use anyhow::Result;

use super::RunOptions;
use crate::aims::{Aim, Aims};
use crate::formats::{Format, KEY};
use crate::round::{Rounds, Variant, measure};
use crate::setup::TestSetup;
use crate::sink::Sink;
use crate::table::{format_number, new_table};
use crate::targets::{CONFIG_OPTIONS, Target, start_mock, start_omniglot};
use crate::workload::{Request, Workload};

/// The variants with their part of the requests that are traced; `None`: traces are off.
const VARIANTS: [(&str, Option<&str>); 3] =
    [("off", None), ("1 %", Some("0.01")), ("all", Some("1"))];

pub async fn run(options: &RunOptions, aims: &mut Aims) -> Result<()> {
    let mock = start_mock(&options.create_directory("traces")?).await?;
    // It takes every export, and reads none.
    let receiver = Sink::start().await?;
    let columns = [
        "chat → chat",
        "CPU at 1 % to off",
        "all",
        "CPU µs/request, off",
        "1 %",
        "all",
    ];
    let mut table = new_table(1, &columns);
    let workloads = [Workload::json(), Workload::stream(options.scaled(50, 5))];
    let mut number = 0;
    for workload in workloads {
        eprintln!("traces, {}", workload.title);
        let mut results: [Rounds; 3] = Default::default();
        for _ in 0..options.scaled(options.rounds * 2, 1) {
            number += 1;
            // Two processes of the same program differ by a few per cent, because of their memory layout.
            let mut targets: Vec<(&str, Target)> = Vec::new();
            for (title, sample) in VARIANTS {
                let directory = format!("traces-{number}-{}", targets.len());
                let directory = options.create_directory(&directory)?;
                let endpoint = receiver.address;
                let telemetry = sample.map_or_else(String::new, |sample| {
                    format!("telemetry: {{endpoint: \"http://{endpoint}\", sample: {sample}}}\n")
                });
                let started =
                    start_omniglot(mock.address, &directory, &CONFIG_OPTIONS, &telemetry).await?;
                targets.push((title, started));
            }
            let variants = targets.iter().map(|(title, target)| Variant {
                title: format!("traces {title}, {}", workload.title),
                target,
                requests: vec![Request::new(
                    &workload,
                    Format::Chat,
                    &TestSetup::model(Format::Chat),
                    KEY,
                    target.address,
                )],
                connections: options.connections,
            });
            let round = measure(variants.collect(), 1, options.time * 2).await?;
            for (rounds, round) in results.iter_mut().zip(round) {
                rounds.append(round);
            }
        }
        let [off, some, all] = &results;
        let ratio = some.cpu_ratio(off);
        table.add_row([
            workload.title.clone(),
            ratio.format_ratio(),
            all.cpu_ratio(off).format_ratio(),
            format_number(Some(off.cpu()), 1),
            format_number(Some(some.cpu()), 1),
            format_number(Some(all.cpu()), 1),
        ]);
        aims.judge(Aim::Traces, ratio.median, workload.title);
    }
    println!("\n## Traces\n\n{table}");
    Ok(())
}

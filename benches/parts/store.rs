//! Measures the cost of accounting: a cap and prices, usage records in a journal, and rows in a database.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;

use super::RunOptions;
use crate::aims::{Aim, Aims};
use crate::formats::{Format, KEY};
use crate::round::{Rounds, Sample, Variant, measure_with_pause};
use crate::setup::{ConfigOptions, TestSetup};
use crate::table::{format_number, new_table};
use crate::targets::{CONFIG_OPTIONS, Target, start_bare, start_mock, start_omniglot};
use crate::workload::{Request, Workload};

/// The time in which background threads copy usage records to the database: they wait for half a second first.
const PAUSE: Duration = Duration::from_millis(800);

/// The processes that differ in their accounting.
struct StoreTargets {
    bare: Target,
    without_costs: Target,
    with_costs: Target,
    with_store: Target,
}

impl StoreTargets {
    async fn start(upstream: SocketAddr, options: &RunOptions, name: &str) -> Result<Self> {
        let directory = |target: &str| options.create_directory(&format!("{name}-{target}"));
        let without_costs = ConfigOptions {
            has_costs: false,
            ..CONFIG_OPTIONS
        };
        let store = directory("with-store")?;
        let (database, journal) = (store.join("store.db"), store.join("journal"));
        let store_config = format!(
            "store: \"sqlite:{}\"\njournal: {{path: {journal:?}}}\n",
            database.display()
        );
        Ok(Self {
            bare: start_bare(upstream, &directory("bare")?).await?,
            without_costs: start_omniglot(
                upstream,
                &directory("without-costs")?,
                &without_costs,
                "",
            )
            .await?,
            with_costs: start_omniglot(upstream, &directory("with-costs")?, &CONFIG_OPTIONS, "")
                .await?,
            with_store: start_omniglot(upstream, &store, &CONFIG_OPTIONS, &store_config).await?,
        })
    }

    fn variants<'a>(&'a self, workload: &Workload, options: &RunOptions) -> Vec<Variant<'a>> {
        let variant = |title: &str, target: &'a Target| Variant {
            title: format!("{title}, {}", workload.title),
            target,
            requests: vec![Request::new(
                workload,
                Format::Chat,
                &TestSetup::model(Format::Chat),
                KEY,
                target.address,
            )],
            connections: options.connections,
        };
        vec![
            variant("bare pingora", &self.bare),
            variant("omniglot without costs", &self.without_costs),
            variant("omniglot", &self.with_costs),
            variant("omniglot with a store", &self.with_store),
        ]
    }
}

pub async fn run(options: &RunOptions, aims: &mut Aims) -> Result<()> {
    let mock = start_mock(&options.create_directory("store")?).await?;
    let mut table = new_table(
        1,
        &[
            "chat → chat",
            "CPU of cap and prices to none",
            "and the journal",
            "and background threads",
            "CPU µs/request, none",
            "cap and prices",
            "and the journal",
            "background threads",
            "bare",
        ],
    );
    let events = options.scaled(50, 5);
    let workloads = [
        Workload::json(),
        Workload::stream(events),
        Workload::paced(events),
    ];
    let mut number = 0;
    for workload in workloads {
        eprintln!("store, {}", workload.title);
        let mut results: [Rounds; 4] = Default::default();
        for _ in 0..options.scaled(options.rounds * 2, 1) {
            number += 1;
            // Two processes of the same program differ by a few per cent, because of their memory layout.
            let targets =
                StoreTargets::start(mock.address, options, &format!("store-{number}")).await?;
            let round = measure_with_pause(
                targets.variants(&workload, options),
                1,
                options.time * 2,
                PAUSE,
            );
            for (rounds, round) in results.iter_mut().zip(round.await?) {
                rounds.append(round);
            }
        }
        let [bare, without_costs, with_costs, with_store] = &results;
        let costs_ratio = with_costs.cpu_ratio(without_costs);
        let journal_ratio = with_store.ratio(without_costs, Sample::foreground);
        table.add_row([
            workload.title.clone(),
            costs_ratio.format_ratio(),
            journal_ratio.format_ratio(),
            with_store.cpu_ratio(without_costs).format_ratio(),
            format_number(Some(without_costs.cpu()), 1),
            format_number(Some(with_costs.cpu()), 1),
            format_number(Some(with_store.median(Sample::foreground)), 1),
            format_number(
                Some(with_store.median(|sample| sample.background_microseconds)),
                1,
            ),
            format_number(Some(bare.cpu()), 1),
        ]);
        aims.judge(Aim::Costs, costs_ratio.median, workload.title.clone());
        aims.judge(Aim::Journal, journal_ratio.median, workload.title);
    }
    println!("\n## Costs and a store\n\n{table}");
    Ok(())
}

//! Measures requests with one key, model and upstream, and with ten thousand of each.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::RunOptions;
use crate::formats::{Format, KEY};
use crate::process::mebibytes;
use crate::round::{Rounds, Variant, measure};
use crate::setup::{ConfigOptions, TestSetup, extra_name};
use crate::table::{format_number, new_table};
use crate::targets::{Target, start_mock, start_omniglot};
use crate::workload::{Request, Workload};

const ONE_MODEL: ConfigOptions = ConfigOptions {
    formats: &[Format::Chat],
    upstreams_per_model: 1,
    extra_models: 0,
    extra_upstreams: 0,
    stores_conversations: true,
    has_limits: true,
    has_costs: true,
};

/// The number of upstreams that thousands of models share.
const SHARED_UPSTREAMS: usize = 16;

/// Gateways whose configs differ in size.
struct CatalogTargets {
    /// It has one key, model and upstream.
    single: Target,
    /// Its many models share a few upstreams.
    shared: Target,
    /// Each of its many models has its own upstream.
    separate: Target,
    /// The time that `shared` took to start.
    start: Duration,
}

impl CatalogTargets {
    async fn start(
        upstream: SocketAddr,
        options: &RunOptions,
        name: &str,
        count: usize,
    ) -> Result<Self> {
        let directory = |target: &str| options.create_directory(&format!("{name}-{target}"));
        let many_models = |upstreams| ConfigOptions {
            extra_models: count - 1,
            extra_upstreams: upstreams,
            ..ONE_MODEL
        };
        let single = start_omniglot(upstream, &directory("single")?, &ONE_MODEL, "").await?;
        let begin = Instant::now();
        let shared = many_models(SHARED_UPSTREAMS);
        let shared = start_omniglot(upstream, &directory("shared")?, &shared, "").await?;
        let start = begin.elapsed();
        let separate = many_models(count - 1);
        let separate = start_omniglot(upstream, &directory("separate")?, &separate, "").await?;
        Ok(Self {
            single,
            shared,
            separate,
            start,
        })
    }

    fn variants(&self, options: &RunOptions, count: usize) -> [Variant<'_>; 5] {
        let request = |key: &str, model: &str, target: &Target| {
            Request::new(&Workload::json(), Format::Chat, model, key, target.address)
        };
        let one = |target: &Target| vec![request(KEY, &TestSetup::model(Format::Chat), target)];
        let in_turn = |target: &Target| {
            let extra = |number| {
                let name = extra_name(number);
                request(&format!("key-of-{name}"), &name, target)
            };
            (0..count - 1).map(extra).collect()
        };
        let (single, shared, separate) = (&self.single, &self.shared, &self.separate);
        let on_shared = format!("{count} keys and models on {SHARED_UPSTREAMS} upstreams");
        let on_separate = format!("{count} keys, models and upstreams");
        [
            ("one of each".to_owned(), single, one(single)),
            (format!("{on_shared}, one requested"), shared, one(shared)),
            (format!("{on_shared}, all in turn"), shared, in_turn(shared)),
            (
                format!("{on_separate}, one requested"),
                separate,
                one(separate),
            ),
            (
                format!("{on_separate}, all in turn"),
                separate,
                in_turn(separate),
            ),
        ]
        .map(|(title, target, requests)| Variant {
            title,
            target,
            requests,
            connections: options.connections,
        })
    }
}

pub async fn run(options: &RunOptions) -> Result<()> {
    let count = options.scaled(10_000, 200);
    let mock = start_mock(&options.create_directory("catalog")?).await?;
    let (mut results, mut titles): ([Rounds; 5], _) = (Default::default(), Vec::new());
    let (mut start, mut resident) = (Duration::MAX, 0);
    for number in 1..=options.rounds {
        eprintln!("catalog, round {number}");
        // Two processes of the same program differ by a few per cent, because of their memory layout.
        let targets =
            CatalogTargets::start(mock.address, options, &format!("catalog-{number}"), count)
                .await?;
        let variants = targets.variants(options, count);
        titles = variants
            .iter()
            .map(|variant| variant.title.clone())
            .collect();
        let round = measure(variants.into(), 1, options.time * 2).await?;
        for (rounds, round) in results.iter_mut().zip(round) {
            rounds.append(round);
        }
        start = start.min(targets.start);
        resident = targets.shared.process.resource_usage()?.resident;
    }
    let header = [
        "keys, models and upstreams",
        "CPU to one of each",
        "CPU µs/request",
        "requests/s",
    ];
    let mut table = new_table(1, &header);
    for (title, rounds) in titles.into_iter().zip(&results) {
        table.add_row([
            title,
            rounds.cpu_ratio(&results[0]).format_ratio(),
            format_number(Some(rounds.cpu()), 1),
            format_number(Some(rounds.throughput()), 0),
        ]);
    }
    println!(
        "\n## Scale: keys, models and upstreams\n\n{table}\n\n{count} keys and models on {SHARED_UPSTREAMS} upstreams: ready after {:.0} ms, {:.1} MiB resident after the load",
        start.as_secs_f64() * 1e3,
        mebibytes(resident)
    );
    Ok(())
}

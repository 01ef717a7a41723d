//! Measures requests per second and CPU time for every pair of formats, next to the bare proxies, nginx and no proxy.

use std::time::Duration;

use anyhow::Result;

use super::RunOptions;
use crate::aims::{Aim, Aims};
use crate::formats::{FORMATS, Format, KEY};
use crate::round::{Rounds, Variant, measure};
use crate::setup::TestSetup;
use crate::table::{format_number, new_table};
use crate::targets::{BARE_MIMALLOC, Target, Targets};
use crate::workload::{Request, Workload};

/// The title of the gateway whose key has no limits, no cap and no prices.
const UNLIMITED: &str = "omniglot, key without limits";

/// The results of all variants with upstreams of one format.
struct UpstreamGroup {
    upstream: Format,
    direct: Rounds,
    bare: Rounds,
    bare_mimalloc: Rounds,
    nginx: Option<Rounds>,
    /// The same format on both sides, and a key without limits and cap.
    unlimited: Rounds,
    /// The client's format, and its results.
    omniglot: Vec<(Format, Rounds)>,
}

/// Measures JSON, and streams of 50 events.
pub async fn run(options: &RunOptions, aims: &mut Aims) -> Result<()> {
    let targets = Targets::start(options, "pairs").await?;
    let events = options.scaled(50, 5);
    let workloads = [
        (
            Workload::json(),
            options.time,
            Some((Aim::SameJson, Aim::TranslatedJson)),
        ),
        (Workload::stream(events), options.time, None),
        // A stream lasts longer than a slice, so there are fewer responses in the same time.
        (
            Workload::paced(events),
            options.time * 2,
            Some((Aim::SamePaced, Aim::TranslatedPaced)),
        ),
    ];
    for (workload, time, aims_of_pairs) in workloads {
        let groups = measure_groups(
            &targets,
            &workload,
            options.connections,
            options.rounds,
            time,
        )
        .await?;
        report(&workload, options.connections, &groups);
        let Some((same, translated)) = aims_of_pairs else {
            continue;
        };
        for (pair, client, group, rounds) in iter_pairs(&groups) {
            let aim = if client == group.upstream {
                same
            } else {
                translated
            };
            aims.judge(aim, rounds.cpu_ratio(&group.bare).median, pair);
            aims.judge_against_mimalloc(aim, rounds.cpu_ratio(&group.bare_mimalloc).median);
        }
    }
    Ok(())
}

/// Measures a long stream on one connection.
pub async fn run_events(options: &RunOptions, aims: &mut Aims) -> Result<()> {
    let targets = Targets::start(options, "events").await?;
    let events = options.scaled(10_000, 500);
    let workload = Workload::stream(events);
    let groups = measure_groups(&targets, &workload, 1, options.rounds, options.time / 2).await?;
    report(&workload, 1, &groups);
    for (pair, client, group, rounds) in iter_pairs(&groups) {
        if client != group.upstream {
            aims.judge(Aim::Event, rounds.cpu() / events as f64, pair);
        }
    }
    Ok(())
}

async fn measure_groups(
    targets: &Targets,
    workload: &Workload,
    connections: u16,
    rounds: u16,
    time: Duration,
) -> Result<Vec<UpstreamGroup>> {
    let mut groups = Vec::new();
    for upstream in FORMATS {
        eprintln!("{}, upstreams of {}", workload.title, upstream.name());
        let model = TestSetup::model(upstream);
        let variant = |variant: &str, target, client: Format| Variant {
            title: format!(
                "{variant}, {} → {}, {}",
                client.name(),
                upstream.name(),
                workload.title
            ),
            target,
            requests: vec![Request::new(workload, client, &model, KEY, target.address)],
            connections,
        };
        let mut variants = vec![
            variant("direct", &targets.mock, upstream),
            variant("bare pingora", &targets.bare, upstream),
            variant(BARE_MIMALLOC, &targets.bare_mimalloc, upstream),
            variant(UNLIMITED, &targets.omniglot_unlimited, upstream),
        ];
        let nginx = targets.nginx.as_ref();
        variants.extend(nginx.map(|target: &Target| variant("nginx", target, upstream)));
        variants.extend(FORMATS.map(|client| variant("omniglot", &targets.omniglot, client)));
        let mut results = measure(variants, rounds, time).await?;
        let omniglot = results.split_off(results.len() - FORMATS.len());
        let mut results = results.into_iter();
        let mut next = || results.next();
        let (Some(direct), Some(bare), Some(bare_mimalloc), Some(unlimited)) =
            (next(), next(), next(), next())
        else {
            anyhow::bail!("a variant without results");
        };
        groups.push(UpstreamGroup {
            upstream,
            direct,
            bare,
            bare_mimalloc,
            nginx: next(),
            unlimited,
            omniglot: FORMATS.into_iter().zip(omniglot).collect(),
        });
    }
    Ok(groups)
}

/// Iterates over all pairs: title, client's format, group and results.
fn iter_pairs(
    groups: &[UpstreamGroup],
) -> impl Iterator<Item = (String, Format, &UpstreamGroup, &Rounds)> {
    groups.iter().flat_map(|group| {
        group.omniglot.iter().map(move |(client, rounds)| {
            let pair = format!("{} → {}", client.name(), group.upstream.name());
            (pair, *client, group, rounds)
        })
    })
}

fn report(workload: &Workload, connections: u16, groups: &[UpstreamGroup]) {
    let per_event = |cpu: f64| format_number(workload.events.map(|events| cpu / events as f64), 2);
    let mut ours = new_table(
        1,
        &[
            "omniglot, client → upstream",
            "CPU to bare",
            "CPU to bare with mimalloc",
            "CPU to nginx",
            "requests/s to bare",
            "to direct",
            "CPU µs/request",
            "CPU µs/event",
            "requests/s",
        ],
    );
    for (pair, _, group, rounds) in iter_pairs(groups) {
        let nginx = group.nginx.as_ref();
        ours.add_row([
            pair,
            rounds.cpu_ratio(&group.bare).format_ratio(),
            rounds.cpu_ratio(&group.bare_mimalloc).format_ratio(),
            format_number(nginx.map(|nginx| rounds.cpu_ratio(nginx).median), 2),
            rounds
                .ratio(&group.bare, |sample| sample.requests_per_second)
                .format_ratio(),
            format_number(
                Some(
                    rounds
                        .ratio(&group.direct, |sample| sample.requests_per_second)
                        .median,
                ),
                2,
            ),
            format_number(Some(rounds.cpu()), 1),
            per_event(rounds.cpu()),
            format_number(Some(rounds.throughput()), 0),
        ]);
    }
    let header = [
        "reference",
        "format",
        "CPU to bare",
        "CPU µs/request",
        "CPU µs/event",
        "requests/s",
    ];
    let mut references = new_table(2, &header);
    for group in groups {
        let variants = [
            ("direct: CPU of the mock", Some(&group.direct)),
            ("bare pingora", Some(&group.bare)),
            (BARE_MIMALLOC, Some(&group.bare_mimalloc)),
            ("nginx", group.nginx.as_ref()),
            (UNLIMITED, Some(&group.unlimited)),
        ];
        for (title, rounds) in variants {
            let Some(rounds) = rounds else { continue };
            // The mock is not a proxy: its CPU time is for orientation.
            let is_compared = ["nginx", BARE_MIMALLOC, UNLIMITED].contains(&title);
            let ratio = is_compared.then(|| rounds.cpu_ratio(&group.bare).median);
            references.add_row([
                title.to_owned(),
                group.upstream.name().to_owned(),
                format_number(ratio, 2),
                format_number(Some(rounds.cpu()), 1),
                per_event(rounds.cpu()),
                format_number(Some(rounds.throughput()), 0),
            ]);
        }
    }
    println!(
        "\n## {}, {connections} connections\n\n{ours}\n\n{references}",
        workload.title
    );
}

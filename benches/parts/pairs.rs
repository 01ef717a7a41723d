//! Every client format on every upstream format: requests per second and CPU time, beside the bare proxies, nginx and no proxy.

use std::time::Duration;

use anyhow::Result;

use super::Terms;
use crate::aims::{Aim, Aims};
use crate::formats::{FORMATS, Format, KEY};
use crate::round::{Entry, Rounds, measure};
use crate::setup::Ground;
use crate::table::{figure, table};
use crate::targets::{BARE_MIMALLOC, Field, Target};
use crate::work::{Request, Work};

/// What was found of all legs that end at upstreams of one format.
struct Group {
    upstream: Format,
    direct: Rounds,
    bare: Rounds,
    bare_mimalloc: Rounds,
    nginx: Option<Rounds>,
    /// By the client's format.
    omniglot: Vec<(Format, Rounds)>,
}

/// JSON, and streams of 50 events.
pub async fn run(terms: &Terms, aims: &mut Aims) -> Result<()> {
    let field = Field::start(terms, "pairs").await?;
    let events = terms.scaled(50, 5);
    let works = [
        (
            Work::json(),
            terms.time,
            Some((Aim::SameJson, Aim::TranslatedJson)),
        ),
        (Work::stream(events), terms.time, None),
        // A stream lasts longer than a slice: fewer answers come in the same time.
        (
            Work::paced(events),
            terms.time * 2,
            Some((Aim::SamePaced, Aim::TranslatedPaced)),
        ),
    ];
    for (work, time, judged) in works {
        let groups = groups(&field, &work, terms.connections, terms.rounds, time).await?;
        report(&work, terms.connections, &groups);
        let Some((same, translated)) = judged else {
            continue;
        };
        for (pair, client, group, rounds) in each(&groups) {
            let aim = if client == group.upstream {
                same
            } else {
                translated
            };
            aims.judge(aim, rounds.cpu_ratio(&group.bare).median, pair);
            aims.compare(aim, rounds.cpu_ratio(&group.bare_mimalloc).median);
        }
    }
    Ok(())
}

/// A long stream on one connection.
pub async fn run_events(terms: &Terms, aims: &mut Aims) -> Result<()> {
    let field = Field::start(terms, "events").await?;
    let events = terms.scaled(10_000, 500);
    let work = Work::stream(events);
    let groups = groups(&field, &work, 1, terms.rounds, terms.time / 2).await?;
    report(&work, 1, &groups);
    for (pair, client, group, rounds) in each(&groups) {
        if client != group.upstream {
            aims.judge(Aim::Event, rounds.cpu() / events as f64, pair);
        }
    }
    Ok(())
}

async fn groups(
    field: &Field,
    work: &Work,
    connections: u16,
    rounds: u16,
    time: Duration,
) -> Result<Vec<Group>> {
    let mut groups = Vec::new();
    for upstream in FORMATS {
        eprintln!("{}, upstreams of {}", work.title, upstream.name());
        let model = Ground::model(upstream);
        let entry = |leg: &str, target, client: Format| Entry {
            title: format!(
                "{leg}, {} → {}, {}",
                client.name(),
                upstream.name(),
                work.title
            ),
            target,
            requests: vec![Request::new(work, client, &model, KEY, target.address)],
            connections,
        };
        let mut entries = vec![
            entry("direct", &field.mock, upstream),
            entry("bare pingora", &field.bare, upstream),
            entry(BARE_MIMALLOC, &field.bare_mimalloc, upstream),
        ];
        let nginx = field.nginx.as_ref();
        entries.extend(nginx.map(|target: &Target| entry("nginx", target, upstream)));
        entries.extend(FORMATS.map(|client| entry("omniglot", &field.omniglot, client)));
        let mut found = measure(entries, rounds, time).await?;
        let omniglot = found.split_off(found.len() - FORMATS.len());
        let mut found = found.into_iter();
        let mut next = || found.next();
        let (Some(direct), Some(bare), Some(bare_mimalloc)) = (next(), next(), next()) else {
            anyhow::bail!("a leg without rounds");
        };
        groups.push(Group {
            upstream,
            direct,
            bare,
            bare_mimalloc,
            nginx: next(),
            omniglot: FORMATS.into_iter().zip(omniglot).collect(),
        });
    }
    Ok(groups)
}

/// All pairs with their titles: client, then upstream.
fn each(groups: &[Group]) -> impl Iterator<Item = (String, Format, &Group, &Rounds)> {
    groups.iter().flat_map(|group| {
        group.omniglot.iter().map(move |(client, rounds)| {
            let pair = format!("{} → {}", client.name(), group.upstream.name());
            (pair, *client, group, rounds)
        })
    })
}

fn report(work: &Work, connections: u16, groups: &[Group]) {
    let per_event = |cpu: f64| figure(work.events.map(|events| cpu / events as f64), 2);
    let mut ours = table(
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
    for (pair, _, group, rounds) in each(groups) {
        let nginx = group.nginx.as_ref();
        ours.add_row([
            pair,
            rounds.cpu_ratio(&group.bare).ratio(),
            rounds.cpu_ratio(&group.bare_mimalloc).ratio(),
            figure(nginx.map(|nginx| rounds.cpu_ratio(nginx).median), 2),
            rounds
                .ratio(&group.bare, |one| one.requests_per_second)
                .ratio(),
            figure(
                Some(
                    rounds
                        .ratio(&group.direct, |one| one.requests_per_second)
                        .median,
                ),
                2,
            ),
            figure(Some(rounds.cpu()), 1),
            per_event(rounds.cpu()),
            figure(Some(rounds.speed()), 0),
        ]);
    }
    let header = [
        "beside it",
        "format",
        "CPU to bare",
        "CPU µs/request",
        "CPU µs/event",
        "requests/s",
    ];
    let mut others = table(2, &header);
    for group in groups {
        let legs = [
            ("direct: CPU of the mock", Some(&group.direct)),
            ("bare pingora", Some(&group.bare)),
            (BARE_MIMALLOC, Some(&group.bare_mimalloc)),
            ("nginx", group.nginx.as_ref()),
        ];
        for (title, rounds) in legs {
            let Some(rounds) = rounds else { continue };
            // The mock is no proxy: its CPU time is there for orientation.
            let is_compared = ["nginx", BARE_MIMALLOC].contains(&title);
            let ratio = is_compared.then(|| rounds.cpu_ratio(&group.bare).median);
            others.add_row([
                title.to_owned(),
                group.upstream.name().to_owned(),
                figure(ratio, 2),
                figure(Some(rounds.cpu()), 1),
                per_event(rounds.cpu()),
                figure(Some(rounds.speed()), 0),
            ]);
        }
    }
    println!(
        "\n## {}, {connections} connections\n\n{ours}\n\n{others}",
        work.title
    );
}

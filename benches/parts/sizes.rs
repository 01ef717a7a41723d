//! Measures JSON from 1 KiB to 20 MiB, as a request and as a response.

use anyhow::Result;

use super::Terms;
use crate::formats::{Format, KEY};
use crate::round::{Entry, measure};
use crate::setup::Ground;
use crate::table::{figure, table};
use crate::targets::Field;
use crate::work::{Request, Work};

const KIB: usize = 1024;
const SIZES: [usize; 6] = [1, 16, 256, 1024, 4 * 1024, 20 * 1024];

/// Few, so that what is in flight at once stays small.
const CONNECTIONS: u16 = 2;

/// The work with so many bytes of text.
type WorkOf = fn(usize) -> Work;

pub async fn run(terms: &Terms) -> Result<()> {
    let field = Field::start(terms, "sizes").await?;
    let sizes: Vec<usize> = terms.scaled(SIZES.to_vec(), vec![1, 256]);
    let kinds: [(&str, WorkOf); 2] = [
        ("requests", Work::long_request),
        ("replies", Work::long_reply),
    ];
    for (kind, work_of) in kinds {
        eprintln!("sizes of {kind}");
        let legs = [
            ("bare pingora, messages", &field.bare, Format::Messages),
            (
                "omniglot, messages → messages",
                &field.omniglot,
                Format::Messages,
            ),
            ("omniglot, chat → messages", &field.omniglot, Format::Chat),
        ];
        let mut entries = Vec::new();
        for &size in &sizes {
            let work = work_of(size * KIB);
            for (title, target, client) in legs {
                let model = Ground::model(Format::Messages);
                entries.push(Entry {
                    title: format!("{title}, {kind} of {size} KiB"),
                    target,
                    requests: vec![Request::new(&work, client, &model, KEY, target.address)],
                    connections: CONNECTIONS,
                });
            }
        }
        let found = measure(entries, terms.rounds, terms.time).await?;
        let mut table = table(
            1,
            &[
                kind,
                "KiB of text",
                "CPU to bare",
                "CPU µs/request",
                "CPU µs/MiB",
                "requests/s",
            ],
        );
        for (number, (title, ..)) in legs.iter().enumerate() {
            for (place, &size) in sizes.iter().enumerate() {
                let group = &found[place * legs.len()..][..legs.len()];
                let rounds = &group[number];
                table.add_row([
                    (*title).to_owned(),
                    size.to_string(),
                    rounds.cpu_ratio(&group[0]).ratio(),
                    figure(Some(rounds.cpu()), 1),
                    figure(Some(rounds.cpu() * 1024.0 / size as f64), 1),
                    figure(Some(rounds.speed()), 1),
                ]);
            }
        }
        println!(
            "\n## Scale: JSON {kind} from {} to {} KiB\n\n{table}",
            sizes[0],
            sizes[sizes.len() - 1]
        );
    }
    Ok(())
}

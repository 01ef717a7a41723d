//! Measures JSON from 1 KiB to 20 MiB, as a request and as a response.

use anyhow::Result;

use super::RunOptions;
use crate::formats::{Format, KEY};
use crate::round::{Variant, measure};
use crate::setup::TestSetup;
use crate::table::{format_number, new_table};
use crate::targets::Targets;
use crate::workload::{Request, Workload};

const KIB: usize = 1024;
const SIZES: [usize; 6] = [1, 16, 256, 1024, 4 * 1024, 20 * 1024];

/// Few, so that little memory is in flight at once.
const CONNECTIONS: u16 = 2;

/// Returns the workload with this many bytes of text.
type SizedWorkload = fn(usize) -> Workload;

pub async fn run(options: &RunOptions) -> Result<()> {
    let targets = Targets::start(options, "sizes").await?;
    let sizes: Vec<usize> = options.scaled(SIZES.to_vec(), vec![1, 256]);
    let kinds: [(&str, SizedWorkload); 2] = [
        ("requests", Workload::long_request),
        ("responses", Workload::long_response),
    ];
    for (kind, sized_workload) in kinds {
        eprintln!("sizes of {kind}");
        let proxies = [
            ("bare pingora, messages", &targets.bare, Format::Messages),
            (
                "omniglot, messages → messages",
                &targets.omniglot,
                Format::Messages,
            ),
            ("omniglot, chat → messages", &targets.omniglot, Format::Chat),
        ];
        let mut variants = Vec::new();
        for &size in &sizes {
            let workload = sized_workload(size * KIB);
            for (title, target, client) in proxies {
                let model = TestSetup::model(Format::Messages);
                variants.push(Variant {
                    title: format!("{title}, {kind} of {size} KiB"),
                    target,
                    requests: vec![Request::new(&workload, client, &model, KEY, target.address)],
                    connections: CONNECTIONS,
                });
            }
        }
        let results = measure(variants, options.rounds, options.time).await?;
        let mut table = new_table(
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
        for (number, (title, ..)) in proxies.iter().enumerate() {
            for (index, &size) in sizes.iter().enumerate() {
                let group = &results[index * proxies.len()..][..proxies.len()];
                let rounds = &group[number];
                table.add_row([
                    (*title).to_owned(),
                    size.to_string(),
                    rounds.cpu_ratio(&group[0]).format_ratio(),
                    format_number(Some(rounds.cpu()), 1),
                    format_number(Some(rounds.cpu() * 1024.0 / size as f64), 1),
                    format_number(Some(rounds.throughput()), 1),
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

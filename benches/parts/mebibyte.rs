//! Measures the translation of a request of 1 MiB against a copy, one parse and one write of it, in this process.

use std::hint::black_box;

use bytes::Bytes;
use omniglot::formats::Capabilities;
use omniglot::model::{Format, Losses};
use omniglot::translate;

use super::RunOptions;
use crate::aims::{Aim, Aims};
use crate::documents::{head, target, text_request};
use crate::table::{format_number, new_table};
use crate::timing::{Timing, parse_and_write, time_alternately};

const MIB: usize = 1 << 20;

pub fn run(options: &RunOptions, aims: &mut Aims) {
    eprintln!("a request of 1 MiB");
    let rounds = usize::from(options.rounds) * options.scaled(3, 1);
    let header = [
        "request of 1 MiB of text, from → to",
        "to plain",
        "ms",
        "plain ms",
    ];
    let mut table = new_table(1, &header);
    for from in Format::ALL {
        let body = Bytes::from(text_request(from, options.scaled(MIB, MIB / 16)));
        for to in Format::ALL.into_iter().filter(|&to| to != from) {
            let timing = compare_request(from, to, &body, rounds);
            let pair = format!("{} → {}", from.name(), to.name());
            table.add_row([
                pair.clone(),
                format_number(Some(timing.ratio), 2),
                format_number(Some(timing.ours / 1e6), 3),
                format_number(Some(timing.plain / 1e6), 3),
            ]);
            aims.judge(Aim::Mebibyte, timing.ratio, pair);
        }
    }
    println!("\n## A large request, in process\n\n{table}");
}

/// Times the translation of a request, and a copy, a parse and a write of its bytes.
fn compare_request(from: Format, to: Format, body: &Bytes, rounds: usize) -> Timing {
    let capabilities = Capabilities::default();
    let (head, target) = (head(), target(&capabilities));
    let mut ours = || {
        let mut losses = Losses::default();
        let body = black_box(&body[..]);
        let outgoing = translate::request(from, to, &head, body, &target, &mut losses);
        black_box(outgoing.expect("a request"));
    };
    let mut plain = || {
        let copy = black_box(&body[..]).to_vec();
        parse_and_write(&copy);
    };
    time_alternately(rounds, 1.0, &mut ours, &mut plain)
}

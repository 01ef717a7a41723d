//! Measures the translation of a request of 1 MiB against a copy, one parse and one write of it, in this process.

use std::hint::black_box;

use bytes::Bytes;
use omniglot::formats::Capabilities;
use omniglot::model::{Format, Losses};
use omniglot::translate;

use super::Terms;
use crate::aims::{Aim, Aims};
use crate::documents::{head, target, text_request};
use crate::table::{figure, table};
use crate::timing::{Times, in_turns, parse_and_write};

const MIB: usize = 1 << 20;

pub fn run(terms: &Terms, aims: &mut Aims) {
    eprintln!("a request of 1 MiB");
    let rounds = usize::from(terms.rounds) * terms.scaled(3, 1);
    let header = [
        "request of 1 MiB of text, from → to",
        "to plain",
        "ms",
        "plain ms",
    ];
    let mut table = table(1, &header);
    for from in Format::ALL {
        let body = Bytes::from(text_request(from, terms.scaled(MIB, MIB / 16)));
        for to in Format::ALL.into_iter().filter(|&to| to != from) {
            let times = contest(from, to, &body, rounds);
            let pair = format!("{} → {}", from.name(), to.name());
            table.add_row([
                pair.clone(),
                figure(Some(times.ratio), 2),
                figure(Some(times.ours / 1e6), 3),
                figure(Some(times.plain / 1e6), 3),
            ]);
            aims.judge(Aim::Mebibyte, times.ratio, pair);
        }
    }
    println!("\n## A large request, in process\n\n{table}");
}

fn contest(from: Format, to: Format, body: &Bytes, rounds: usize) -> Times {
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
    in_turns(rounds, 1.0, &mut ours, &mut plain)
}

//! Measures the translation of requests and whole responses, for every pair of formats, beside a plain parse and write.

mod allocations;
mod comparison;
mod documents;
mod requests;
mod response_options;
mod responses;
mod settings;
mod timing;

use std::hint::black_box;

use bytes::Bytes;
use clap::Parser;
use omniglot::formats::{Capabilities, Operation};
use omniglot::model::{Format, Losses};
use omniglot::translate::{self, RequestSummary, ResponseTranslator};

use comparison::{Outcome, hold, row, table};
use documents::{head, target, text_request};
use requests::{picture_request, realistic_request, small_request};
use response_options::response_options;
use responses::{realistic_reply, small_reply};
use settings::MODEL;
use timing::parse_and_write;

const MIB: usize = 1 << 20;

/// Measures what translating requests and whole replies costs, in time on a core and in allocations.
///
/// `plain` is serde_json reading the same bytes into a tree and writing it again. Ratios are formed
/// within a round, in which the two take turns, and their median is shown. A pair of the same format is what the
/// gateway does there: the body is searched, and the model's name in it replaced. Without the
/// --bench that `cargo bench` passes the run is a --quick one.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench translate -- [OPTIONS] [ONLY]")]
struct Options {
    /// Only tables and pairs that hold this word, as in `reply` or `chat → native`
    #[arg(default_value = "")]
    only: String,
    /// Rounds for each figure
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// One round: shows that everything works, its figures mean little
    #[arg(long)]
    quick: bool,
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn rounds(&self) -> usize {
        if self.quick || !self.bench {
            1
        } else {
            usize::from(self.rounds)
        }
    }
}

fn request(from: Format, to: Format, body: &Bytes, rounds: usize) -> Outcome {
    let capabilities = Capabilities::default();
    let (head, target) = (head(), target(&capabilities));
    let plain = || parse_and_write(body);
    if from == to {
        let path_model = (from == Format::Native).then_some(MODEL);
        let same = || {
            let wanted = RequestSummary::new(
                from.codec(),
                Operation::Generate,
                path_model,
                black_box(body),
            );
            black_box(wanted.expect("a request").passthrough_body(
                from.codec(),
                body,
                target.model,
                target.brand,
            ));
        };
        return hold(rounds, 1.0, same, plain);
    }
    let translate = || {
        let mut losses = Losses::default();
        let body = black_box(&body[..]);
        let outgoing = translate::request(from, to, &head, body, &target, &mut losses);
        black_box(outgoing.expect("a request"));
    };
    hold(rounds, 1.0, translate, plain)
}

/// From an upstream to its client.
fn reply(from: Format, to: Format, body: &Bytes, rounds: usize) -> Outcome {
    let asked = response_options(false);
    let question = small_request(to);
    let wanted = RequestSummary::new(to.codec(), Operation::Generate, Some(MODEL), &question);
    let wanted = wanted.expect("a request");
    let ours = || {
        let json = "application/json";
        let reply = ResponseTranslator::new(to, from, &wanted, asked.clone(), json, usize::MAX);
        let mut chunk = Some(black_box(body.clone()));
        let pushed = reply.expect("a reply").translate_chunk(&mut chunk, true);
        pushed.expect("a reply");
        black_box(chunk);
    };
    hold(rounds, 1.0, ours, || parse_and_write(body))
}

type Body = fn(Format) -> Vec<u8>;
type Contest = fn(Format, Format, &Bytes, usize) -> Outcome;

const WORKS: [(&str, Body, Contest); 6] = [
    (
        "request of several turns with tools and a schema",
        realistic_request,
        request,
    ),
    ("small request", small_request, request),
    (
        "request with 1 MiB of text",
        |format| text_request(format, MIB),
        request,
    ),
    (
        "request with a picture of 20 MiB",
        |format| picture_request(format, 20 * MIB),
        request,
    ),
    (
        "reply with thoughts, text and two calls",
        realistic_reply,
        reply,
    ),
    ("small reply", small_reply, reply),
];

fn main() {
    let options = Options::parse();
    for (title, body, contest) in WORKS {
        let mut table = table("body");
        let mut worst: Option<f64> = None;
        for from in Format::ALL {
            let pair = |to: Format| format!("{} → {}", from.name(), to.name());
            let is_wanted =
                |to: &Format| title.contains(&options.only) || pair(*to).contains(&options.only);
            let wanted: Vec<Format> = Format::ALL.into_iter().filter(is_wanted).collect();
            if wanted.is_empty() {
                continue;
            }
            let body = Bytes::from(body(from));
            for to in wanted {
                let outcome = contest(from, to, &body, options.rounds());
                if from != to {
                    worst = Some(worst.unwrap_or(0.0).max(outcome.ratio));
                }
                table.add_row(row(format!("{}, {} B", pair(to), body.len()), &outcome));
            }
        }
        if table.row_iter().next().is_some() {
            println!("\n{title}\n\n{table}");
        }
        if let Some(worst) = worst {
            println!("\nmost of a translated pair: {worst:.2} times a plain parse and write");
        }
    }
}

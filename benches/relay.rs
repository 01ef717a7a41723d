//! Measures the cost of one event of a stream, for every pair of formats, beside a plain parse and write of its payload.

mod allocations;
mod comparison;
mod response_options;
mod settings;
mod streams;
mod timing;

use std::hint::black_box;

use bytes::Bytes;
use clap::Parser;
use omniglot::formats::Operation;
use omniglot::model::Format;
use omniglot::sse::SseFrames;
use omniglot::translate::{RequestSummary, ResponseTranslator};

use comparison::{Outcome, hold, row, table};
use response_options::response_options;
use settings::MODEL;
use streams::{Pieces, stream_in};
use timing::parse_and_write;

/// Measures what one event of a stream costs, in time on a core and in allocations.
///
/// Every event comes in a chunk of its own, as upstreams send them. `plain` is serde_json reading
/// each payload into a tree and writing it again. Without the --bench that `cargo bench` passes the
/// run is a --quick one.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench relay -- [OPTIONS] [ONLY]")]
struct Options {
    /// Only tables and pairs that hold this word, as in `thoughts` or `chat → native`
    #[arg(default_value = "")]
    only: String,
    /// Times that every pair is met, one after the other
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=100))]
    passes: u16,
    /// Rounds in each of them
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Pieces in a stream
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(2..))]
    pieces: u16,
    /// One round: shows that everything works, its figures mean little
    #[arg(long)]
    quick: bool,
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn is_quick(&self) -> bool {
        self.quick || !self.bench
    }

    fn rounds(&self) -> usize {
        if self.is_quick() {
            1
        } else {
            usize::from(self.rounds)
        }
    }

    fn passes(&self) -> u16 {
        if self.is_quick() { 1 } else { self.passes }
    }
}

/// From an upstream to its client.
fn relay(from: Format, to: Format, events: &[Bytes], rounds: usize) -> Outcome {
    let asked = response_options(true);
    let operation = Operation::Stream(asked.framing);
    let wanted = RequestSummary::new(to.codec(), operation, Some(MODEL), b"{}");
    let wanted = wanted.expect("a request");
    let ours = || {
        let stream = "text/event-stream";
        let reply = ResponseTranslator::new(to, from, &wanted, asked.clone(), stream, usize::MAX);
        let mut reply = reply.expect("a stream");
        for event in events {
            let mut chunk = Some(black_box(event.clone()));
            reply.translate_chunk(&mut chunk, false).expect("an event");
            black_box(chunk);
        }
        reply.translate_chunk(&mut None, true).expect("an end");
    };
    let payloads: Vec<String> = events.iter().filter_map(payload).collect();
    let plain = || {
        payloads
            .iter()
            .for_each(|data| parse_and_write(data.as_bytes()))
    };
    hold(rounds, events.len() as f64, ours, plain)
}

/// The JSON of an event, if it has any.
fn payload(event: &Bytes) -> Option<String> {
    let mut found = None;
    SseFrames::default().push(event, |frame| found = frame.data.map(String::from));
    found.filter(|data| data.starts_with('{'))
}

/// All pairs of one kind of stream, in the order of the table.
fn pairs(
    pieces: Pieces,
    is_asked_for: impl Fn(&str) -> bool,
    options: &Options,
) -> Vec<(String, Outcome)> {
    let mut pairs = Vec::new();
    for from in Format::ALL {
        // This format has no pieces of arguments: its call is one event.
        if from == Format::Native && pieces == Pieces::Arguments {
            continue;
        }
        let events = stream_in(from, pieces, usize::from(options.pieces));
        let events: Vec<Bytes> = events.into_iter().map(Bytes::from).collect();
        for to in Format::ALL {
            let pair = format!("{} → {}", from.name(), to.name());
            if is_asked_for(&pair) {
                pairs.push((pair, relay(from, to, &events, options.rounds())));
            }
        }
    }
    pairs
}

/// The one whose time is the median.
fn middle(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.sort_by(|one, other| one.ours.nanoseconds.total_cmp(&other.ours.nanoseconds));
    outcomes[outcomes.len() / 2]
}

fn main() {
    let options = Options::parse();
    let kinds = [
        ("stream of text", Pieces::Text),
        ("stream of thoughts", Pieces::Reasoning),
        ("stream of a call's arguments", Pieces::Arguments),
    ];
    // A pair is met at several times: a machine that is slow for a second is not slow for one pair alone.
    let mut found: [Vec<Vec<(String, Outcome)>>; 3] = Default::default();
    for _ in 0..options.passes() {
        for ((title, pieces), found) in kinds.iter().zip(&mut found) {
            let is_asked_for =
                |pair: &str| title.contains(&options.only) || pair.contains(&options.only);
            found.push(pairs(*pieces, is_asked_for, &options));
        }
    }
    for ((title, _), passes) in kinds.iter().zip(found) {
        let mut table = table("event");
        let mut worst: Option<f64> = None;
        for (number, (pair, _)) in passes[0].iter().enumerate() {
            let outcome = middle(passes.iter().map(|pass| pass[number].1).collect());
            worst = Some(worst.unwrap_or(0.0).max(outcome.ours.nanoseconds));
            table.add_row(row(pair.clone(), &outcome));
        }
        if let Some(worst) = worst {
            println!("\n{title}\n\n{table}\n\nmost: {worst:.0} ns for an event");
        }
    }
}

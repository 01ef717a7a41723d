//! What an event of a stream costs on its way through, for every pair of formats, beside a plain parse and write of its payload.

mod allocations;
mod contest;
mod settings;
mod streams;
mod timing;

use std::hint::black_box;

use bytes::Bytes;
use clap::Parser;
use omniglot::formats::Operation;
use omniglot::model::Format;
use omniglot::sse::Frames;
use omniglot::translate::{Reply, Wanted};

use contest::{Outcome, hold, row, table};
use settings::{MODEL, asked};
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
    /// Rounds for each figure
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
    fn rounds(&self) -> usize {
        if self.quick || !self.bench {
            1
        } else {
            usize::from(self.rounds)
        }
    }
}

/// From an upstream to its client.
fn relay(from: Format, to: Format, events: &[Bytes], rounds: usize) -> Outcome {
    let asked = asked(true);
    let operation = Operation::Stream(asked.framing);
    let wanted = Wanted::of(to.codec(), operation, Some(MODEL), b"{}");
    let wanted = wanted.expect("a request");
    let ours = || {
        let stream = "text/event-stream";
        let reply = Reply::choose(to, from, &wanted, &asked, stream, usize::MAX);
        let mut reply = reply.expect("a stream");
        for event in events {
            let mut chunk = Some(black_box(event.clone()));
            reply.push(&mut chunk, false).expect("an event");
            black_box(chunk);
        }
        reply.push(&mut None, true).expect("an end");
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
    Frames::default().push(event, |frame| found = frame.data.map(String::from));
    found.filter(|data| data.starts_with('{'))
}

fn main() {
    let options = Options::parse();
    for (title, pieces) in [
        ("stream of text", Pieces::Text),
        ("stream of thoughts", Pieces::Thought),
        ("stream of a call's arguments", Pieces::Arguments),
    ] {
        let mut table = table("event");
        let mut worst: Option<f64> = None;
        for from in Format::ALL {
            let events = stream_in(from, pieces, usize::from(options.pieces));
            let events: Vec<Bytes> = events.into_iter().map(Bytes::from).collect();
            for to in Format::ALL {
                let pair = format!("{} → {}", from.name(), to.name());
                // This format has no pieces of arguments: its call is one event.
                let whole = from == Format::Native && pieces == Pieces::Arguments;
                if whole || !title.contains(&options.only) && !pair.contains(&options.only) {
                    continue;
                }
                let outcome = relay(from, to, &events, options.rounds());
                worst = Some(worst.unwrap_or(0.0).max(outcome.ours.nanoseconds));
                table.add_row(row(pair, &outcome));
            }
        }
        if let Some(worst) = worst {
            println!("\n{title}\n\n{table}\n\nmost: {worst:.0} ns for an event");
        }
    }
}

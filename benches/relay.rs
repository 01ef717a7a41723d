//! Measures the cost of one event of a stream, for every pair of formats, next to a plain parse and write of its data.

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

use comparison::{Comparison, compare, new_table, table_row};
use response_options::response_options;
use settings::MODEL;
use streams::{DeltaKind, encode_stream};
use timing::parse_and_write;

/// Measures the cost of one event of a stream, in CPU time and in allocations.
///
/// Every event arrives in a chunk of its own, as upstreams send them. `plain` is serde_json parsing
/// the data of each event into a tree and writing it again. Without the --bench that `cargo bench` passes the
/// run is a --quick one.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench relay -- [OPTIONS] [ONLY]")]
struct Options {
    /// Only tables and pairs whose title contains this text, as in `reasoning` or `chat → native`
    #[arg(default_value = "")]
    only: String,
    /// Passes over all pairs; the median of the passes is shown
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=100))]
    passes: u16,
    /// Rounds for each pair in a pass
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Content deltas in a stream
    #[arg(long = "pieces", value_name = "PIECES", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(2..))]
    deltas: u16,
    /// One round: shows that everything works; its figures mean little
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

/// Measures the translation of a stream from an upstream's format to a client's.
fn compare_stream(from: Format, to: Format, events: &[Bytes], rounds: usize) -> Comparison {
    let response_options = response_options(true);
    let operation = Operation::Stream(response_options.framing);
    let summary = RequestSummary::new(to.codec(), operation, Some(MODEL), b"{}");
    let summary = summary.expect("a request");
    let ours = || {
        let content_type = "text/event-stream";
        let translator = ResponseTranslator::new(
            to,
            from,
            &summary,
            response_options.clone(),
            content_type,
            usize::MAX,
        );
        let mut translator = translator.expect("a stream");
        for event in events {
            let mut chunk = Some(black_box(event.clone()));
            translator
                .translate_chunk(&mut chunk, false)
                .expect("an event");
            black_box(chunk);
        }
        translator.translate_chunk(&mut None, true).expect("an end");
    };
    let event_data: Vec<String> = events.iter().filter_map(json_data).collect();
    let plain = || {
        event_data
            .iter()
            .for_each(|data| parse_and_write(data.as_bytes()))
    };
    compare(rounds, events.len() as f64, ours, plain)
}

/// Returns the data of an event if it is JSON.
fn json_data(event: &Bytes) -> Option<String> {
    let mut found = None;
    SseFrames::default().push(event, |frame| found = frame.data.map(String::from));
    found.filter(|data| data.starts_with('{'))
}

/// Measures all pairs for one kind of stream, in the order of the table.
fn compare_pairs(
    kind: DeltaKind,
    is_selected: impl Fn(&str) -> bool,
    options: &Options,
) -> Vec<(String, Comparison)> {
    let mut pairs = Vec::new();
    for from in Format::ALL {
        // The native format has no deltas of arguments: a function call is one event.
        if from == Format::Native && kind == DeltaKind::Arguments {
            continue;
        }
        let events = encode_stream(from, kind, usize::from(options.deltas));
        let events: Vec<Bytes> = events.into_iter().map(Bytes::from).collect();
        for to in Format::ALL {
            let pair = format!("{} → {}", from.name(), to.name());
            if is_selected(&pair) {
                pairs.push((pair, compare_stream(from, to, &events, options.rounds())));
            }
        }
    }
    pairs
}

/// Returns the comparison whose time is the median.
fn median(mut comparisons: Vec<Comparison>) -> Comparison {
    comparisons.sort_by(|one, other| one.ours.nanoseconds.total_cmp(&other.ours.nanoseconds));
    comparisons[comparisons.len() / 2]
}

fn main() {
    let options = Options::parse();
    let kinds = [
        ("stream of text", DeltaKind::Text),
        ("stream of reasoning", DeltaKind::Reasoning),
        ("stream of a tool call's arguments", DeltaKind::Arguments),
    ];
    // Passes over all pairs spread the effect of a machine that is slow for a second.
    let mut results: [Vec<Vec<(String, Comparison)>>; 3] = Default::default();
    for _ in 0..options.passes() {
        for ((title, kind), results) in kinds.iter().zip(&mut results) {
            let is_selected =
                |pair: &str| title.contains(&options.only) || pair.contains(&options.only);
            results.push(compare_pairs(*kind, is_selected, &options));
        }
    }
    for ((title, _), passes) in kinds.iter().zip(results) {
        let mut table = new_table("event");
        let mut worst: Option<f64> = None;
        for (number, (pair, _)) in passes[0].iter().enumerate() {
            let comparison = median(passes.iter().map(|pass| pass[number].1).collect());
            worst = Some(worst.unwrap_or(0.0).max(comparison.ours.nanoseconds));
            table.add_row(table_row(pair.clone(), &comparison));
        }
        if let Some(worst) = worst {
            println!("\n{title}\n\n{table}\n\nmaximum: {worst:.0} ns/event");
        }
    }
}

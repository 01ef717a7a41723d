//! Measures the translation of requests and whole responses, for every pair of formats, next to a plain parse and write.

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

use comparison::{Comparison, compare, new_table, table_row};
use documents::{head, target, text_request};
use requests::{image_request, realistic_request, small_request};
use response_options::response_options;
use responses::{realistic_response, small_response};
use settings::MODEL;
use timing::parse_and_write;

const MIB: usize = 1 << 20;

/// Measures the cost of translating requests and whole responses, in CPU time and in allocations.
///
/// `plain` is serde_json parsing the same bytes into a tree and writing it again. Ratios are computed
/// within a round, in which the two take turns, and their median is shown. A pair of the same format is
/// passthrough: the gateway searches the body for the model's name and replaces it. Without the
/// --bench that `cargo bench` passes the run is a --quick one.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench translate -- [OPTIONS] [ONLY]")]
struct Options {
    /// Only tables and pairs whose title contains this text, as in `response` or `chat → native`
    #[arg(default_value = "")]
    only: String,
    /// Rounds for each figure
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// One round: shows that everything works; its figures mean little
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

/// Measures the translation of a request from a client's format to an upstream's, or its passthrough.
fn compare_request(from: Format, to: Format, body: &Bytes, rounds: usize) -> Comparison {
    let capabilities = Capabilities::default();
    let (head, target) = (head(), target(&capabilities));
    let plain = || parse_and_write(body);
    if from == to {
        let path_model = (from == Format::Native).then_some(MODEL);
        let passthrough = || {
            let summary = RequestSummary::new(
                from.codec(),
                Operation::Generate,
                path_model,
                black_box(body),
            );
            black_box(summary.expect("a request").passthrough_body(
                from.codec(),
                body,
                target.model,
                target.brand,
            ));
        };
        return compare(rounds, 1.0, passthrough, plain);
    }
    let translate = || {
        let mut losses = Losses::default();
        let body = black_box(&body[..]);
        let outgoing = translate::request(from, to, &head, body, &target, &mut losses);
        black_box(outgoing.expect("a request"));
    };
    compare(rounds, 1.0, translate, plain)
}

/// Measures the translation of a response from an upstream's format to a client's.
fn compare_response(from: Format, to: Format, body: &Bytes, rounds: usize) -> Comparison {
    let response_options = response_options(false);
    let request = small_request(to);
    let summary = RequestSummary::new(to.codec(), Operation::Generate, Some(MODEL), &request);
    let summary = summary.expect("a request");
    let ours = || {
        let content_type = "application/json";
        let translator = ResponseTranslator::new(
            to,
            from,
            &summary,
            response_options.clone(),
            content_type,
            usize::MAX,
        );
        let mut chunk = Some(black_box(body.clone()));
        let translated = translator
            .expect("a response")
            .translate_chunk(&mut chunk, true);
        translated.expect("a response");
        black_box(chunk);
    };
    compare(rounds, 1.0, ours, || parse_and_write(body))
}

/// Encodes the body to translate in a format.
type EncodeBody = fn(Format) -> Vec<u8>;
/// Measures the translation of a body.
type CompareBody = fn(Format, Format, &Bytes, usize) -> Comparison;

const WORKLOADS: [(&str, EncodeBody, CompareBody); 6] = [
    (
        "request of several turns with tools and a schema",
        realistic_request,
        compare_request,
    ),
    ("small request", small_request, compare_request),
    (
        "request with 1 MiB of text",
        |format| text_request(format, MIB),
        compare_request,
    ),
    (
        "request with an image of 20 MiB",
        |format| image_request(format, 20 * MIB),
        compare_request,
    ),
    (
        "response with reasoning, text and two tool calls",
        realistic_response,
        compare_response,
    ),
    ("small response", small_response, compare_response),
];

fn main() {
    let options = Options::parse();
    for (title, encode_body, compare_body) in WORKLOADS {
        let mut table = new_table("body");
        let mut worst: Option<f64> = None;
        for from in Format::ALL {
            let pair = |to: Format| format!("{} → {}", from.name(), to.name());
            let is_selected =
                |to: &Format| title.contains(&options.only) || pair(*to).contains(&options.only);
            let selected: Vec<Format> = Format::ALL.into_iter().filter(is_selected).collect();
            if selected.is_empty() {
                continue;
            }
            let body = Bytes::from(encode_body(from));
            for to in selected {
                let comparison = compare_body(from, to, &body, options.rounds());
                if from != to {
                    worst = Some(worst.unwrap_or(0.0).max(comparison.ratio));
                }
                table.add_row(table_row(
                    format!("{}, {} B", pair(to), body.len()),
                    &comparison,
                ));
            }
        }
        if table.row_iter().next().is_some() {
            println!("\n{title}\n\n{table}");
        }
        if let Some(worst) = worst {
            println!("\nmaximum of the translated pairs: {worst:.2} times a plain parse and write");
        }
    }
}

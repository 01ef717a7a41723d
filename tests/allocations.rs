//! Limits the allocations and the allocated bytes of a translation.

#[path = "../benches/allocations.rs"]
mod allocations;
#[path = "../benches/documents.rs"]
mod documents;
#[path = "../benches/requests.rs"]
mod requests;
#[path = "../benches/response_options.rs"]
mod response_options;
#[path = "../benches/responses.rs"]
mod responses;
#[path = "../benches/settings.rs"]
mod settings;
#[path = "../benches/streams.rs"]
mod streams;

use bytes::Bytes;
use omniglot::formats::{Capabilities, Operation};
use omniglot::model::{Format, Losses};
use omniglot::translate::{self, RequestSummary, ResponseTranslator};

use allocations::Allocations;
use documents::{head, target, text_request};
use requests::{image_request, realistic_request, small_request};
use response_options::response_options;
use responses::{realistic_response, small_response};
use settings::MODEL;
use streams::{DeltaKind, encode_stream};

/// Counts the allocations of translating a request.
fn translate_request(from: Format, to: Format, body: &[u8]) -> Allocations {
    let capabilities = Capabilities::default();
    let (head, target) = (head(), target(&capabilities));
    let before = Allocations::current();
    let mut losses = Losses::default();
    let outgoing = translate::request(from, to, &head, body, &target, &mut losses);
    let allocations = Allocations::current() - before;
    outgoing.expect("a request");
    allocations
}

/// Counts the allocations of translating or passing through a response.
fn translate_response(from: Format, to: Format, body: Vec<u8>) -> Allocations {
    let options = response_options(false);
    let summary = RequestSummary::new(to.codec(), Operation::Generate, Some(MODEL), b"{}");
    let summary = summary.expect("a request");
    let mut chunk = Some(Bytes::from(body));
    let before = Allocations::current();
    let response =
        ResponseTranslator::new(to, from, &summary, options, "application/json", usize::MAX);
    let translated = response
        .expect("a response")
        .translate_chunk(&mut chunk, true);
    let allocations = Allocations::current() - before;
    translated.expect("a response");
    allocations
}

/// Counts the allocations of translating a stream of `count` deltas, one event at a time.
fn translate_stream(from: Format, to: Format, kind: DeltaKind, count: usize) -> u64 {
    let options = response_options(true);
    let operation = Operation::Stream(options.framing);
    let summary = RequestSummary::new(to.codec(), operation, Some(MODEL), b"{}");
    let summary = summary.expect("a request");
    let events = encode_stream(from, kind, count)
        .into_iter()
        .map(Bytes::from);
    let events: Vec<Bytes> = events.collect();
    let response =
        ResponseTranslator::new(to, from, &summary, options, "text/event-stream", usize::MAX);
    let mut response = response.expect("a stream");
    let before = Allocations::current();
    for event in events {
        let mut chunk = Some(event);
        response
            .translate_chunk(&mut chunk, false)
            .expect("an event");
    }
    (Allocations::current() - before).count
}

fn pairs() -> impl Iterator<Item = (Format, Format)> {
    let all = Format::ALL.into_iter();
    all.flat_map(|from| Format::ALL.map(|to| (from, to)))
}

fn pair_name((from, to): (Format, Format)) -> String {
    format!("{} → {}", from.name(), to.name())
}

/// Limits by the format that a body is translated from (rows) and to (columns), in the order of
/// `Format::ALL`.
type Limits = [[u64; 4]; 4];

fn limit_of(limits: Limits, (from, to): (Format, Format)) -> u64 {
    let at = |format| Format::ALL.iter().position(|one| *one == format);
    limits[at(from).expect("a format")][at(to).expect("a format")]
}

/// Fails with all pairs that exceed their limit.
fn assert_limits(limits: Limits, count: impl Fn(Format, Format) -> Option<u64>) {
    let mut over = Vec::new();
    for pair in pairs() {
        if let Some(count) = count(pair.0, pair.1)
            && count > limit_of(limits, pair)
        {
            over.push(format!("{}: {count}", pair_name(pair)));
        }
    }
    assert!(over.is_empty(), "more than {limits:?}: {over:?}");
}

#[test]
fn requests_need_few_allocations() {
    let realistic: Limits = [
        [0, 224, 344, 181],
        [174, 0, 336, 176],
        [397, 442, 0, 398],
        [173, 217, 337, 0],
    ];
    assert_limits(realistic, |from, to| {
        (from != to).then(|| translate_request(from, to, &realistic_request(from)).count)
    });
    let small: Limits = [[0, 9, 9, 8], [8, 0, 9, 8], [11, 12, 0, 11], [8, 9, 9, 0]];
    assert_limits(small, |from, to| {
        (from != to).then(|| translate_request(from, to, &small_request(from)).count)
    });
}

#[test]
fn responses_need_few_allocations() {
    // From responses to responses, the second allocation is the id, and the third those of the items, which are stored
    // with the key.
    let realistic: Limits = [
        [4, 18, 22, 34],
        [27, 1, 25, 43],
        [25, 21, 1, 41],
        [32, 30, 34, 3],
    ];
    assert_limits(realistic, |from, to| {
        Some(translate_response(from, to, realistic_response(from)).count)
    });
    let small: Limits = [
        [4, 8, 10, 17],
        [12, 1, 13, 20],
        [9, 8, 1, 17],
        [13, 12, 14, 3],
    ];
    assert_limits(small, |from, to| {
        Some(translate_response(from, to, small_response(from)).count)
    });
}

/// Allocations for two hundred events that are not those of single events: a text grows, and the encoder needs a buffer.
const AMORTIZED: u64 = 30;

#[test]
fn stream_events_need_no_allocation() {
    // An event in which the model's name is replaced is copied; a parser that skips nested values
    // stores their brackets.
    for (kind, renamed) in [
        (DeltaKind::Text, 2),
        (DeltaKind::Reasoning, 2),
        (DeltaKind::Arguments, 3),
    ] {
        let limits: Limits = [[renamed, 0, 0, 0], [0; 4], [0, 0, 1, 0], [0; 4]];
        assert_limits(limits, |from, to| {
            let more =
                translate_stream(from, to, kind, 300) - translate_stream(from, to, kind, 100);
            Some(more.saturating_sub(AMORTIZED).div_ceil(200))
        });
    }
}

#[test]
fn large_values_are_copied_once() {
    const SIZE: usize = 1 << 20;
    const ONCE: u64 = SIZE as u64 / 16 * 17 + 65_536;
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        let bytes = translate_request(from, to, &image_request(from, SIZE)).bytes;
        assert!(bytes <= ONCE, "{}: {bytes} bytes", pair_name((from, to)));
    }
}

#[test]
fn long_text_is_unescaped_once_and_encoded_once() {
    const SIZE: usize = 1 << 18;
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        let bytes = translate_request(from, to, &text_request(from, SIZE)).bytes;
        // Unescaping reallocates its buffer as the text grows.
        assert!(
            bytes <= 7 * SIZE as u64,
            "{}: {bytes} bytes",
            pair_name((from, to))
        );
    }
}

/// Finding a model costs lookups, also among thousands of ids with a `*`.
#[test]
fn finding_a_model_allocates_nothing() {
    let patterns = (0..2000)
        .map(|number| format!("  - {{id: \"team-{number}/*\", upstreams: [{{name: up}}]}}\n"));
    let text = format!(
        "upstreams: [{{name: up, format: chat, base_url: \"http://up\"}}]\nmodels:\n  \
         - {{id: exact, aliases: [alias], upstreams: [{{name: up}}]}}\n{}",
        patterns.collect::<String>()
    );
    let config = omniglot::config::parse("test.yaml", &text, &|_| None).expect("a config");
    let names = omniglot::config::ModelNames::new(config.models.iter());
    for (name, number) in [
        ("exact", Some(0)),
        ("alias", Some(0)),
        ("team-1999/large", Some(2000)),
        ("team-2000/large", None),
    ] {
        let before = Allocations::current();
        let found = names.find(name);
        let allocations = Allocations::current() - before;
        assert_eq!(found.map(|found| found.number), number, "{name}");
        assert_eq!(allocations.count, 0, "{name}");
    }
}

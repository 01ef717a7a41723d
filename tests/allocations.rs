//! Limits of how many allocations and bytes a translation needs.

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
use requests::{picture_request, realistic_request, small_request};
use response_options::response_options;
use responses::{realistic_reply, small_reply};
use settings::MODEL;
use streams::{Pieces, stream_in};

/// What one request costs to translate.
fn of_request(from: Format, to: Format, body: &[u8]) -> Allocations {
    let capabilities = Capabilities::default();
    let (head, target) = (head(), target(&capabilities));
    let before = Allocations::so_far();
    let mut losses = Losses::default();
    let outgoing = translate::request(from, to, &head, body, &target, &mut losses);
    let spent = Allocations::so_far() - before;
    outgoing.expect("a request");
    spent
}

/// What one reply costs to translate, or to pass.
fn of_reply(from: Format, to: Format, body: Vec<u8>) -> Allocations {
    let asked = response_options(false);
    let summary = RequestSummary::new(to.codec(), Operation::Generate, Some(MODEL), b"{}");
    let summary = summary.expect("a request");
    let mut chunk = Some(Bytes::from(body));
    let before = Allocations::so_far();
    let response =
        ResponseTranslator::new(to, from, &summary, asked, "application/json", usize::MAX);
    let pushed = response.expect("a reply").translate_chunk(&mut chunk, true);
    let spent = Allocations::so_far() - before;
    pushed.expect("a reply");
    spent
}

/// What a stream of so many pieces costs, one event at a time.
fn of_stream(from: Format, to: Format, pieces: Pieces, count: usize) -> u64 {
    let asked = response_options(true);
    let operation = Operation::Stream(asked.framing);
    let summary = RequestSummary::new(to.codec(), operation, Some(MODEL), b"{}");
    let summary = summary.expect("a request");
    let events = stream_in(from, pieces, count).into_iter().map(Bytes::from);
    let events: Vec<Bytes> = events.collect();
    let response =
        ResponseTranslator::new(to, from, &summary, asked, "text/event-stream", usize::MAX);
    let mut response = response.expect("a stream");
    let before = Allocations::so_far();
    for event in events {
        let mut chunk = Some(event);
        response
            .translate_chunk(&mut chunk, false)
            .expect("an event");
    }
    (Allocations::so_far() - before).count
}

fn pairs() -> impl Iterator<Item = (Format, Format)> {
    let all = Format::ALL.into_iter();
    all.flat_map(|from| Format::ALL.map(|to| (from, to)))
}

fn named((from, to): (Format, Format)) -> String {
    format!("{} → {}", from.name(), to.name())
}

/// Rows are the formats that bodies come from, columns those that they go to, in the order of
/// `Format::ALL`.
type OutputLimit = [[u64; 4]; 4];

fn most_of(most: OutputLimit, (from, to): (Format, Format)) -> u64 {
    let at = |format| Format::ALL.iter().position(|one| *one == format);
    most[at(from).expect("a format")][at(to).expect("a format")]
}

/// All that exceed their row and column, in one message.
fn hold(most: OutputLimit, spent: impl Fn(Format, Format) -> Option<u64>) {
    let mut over = Vec::new();
    for pair in pairs() {
        if let Some(count) = spent(pair.0, pair.1)
            && count > most_of(most, pair)
        {
            over.push(format!("{}: {count}", named(pair)));
        }
    }
    assert!(over.is_empty(), "more than {most:?}: {over:?}");
}

#[test]
fn requests_need_few_allocations() {
    let realistic: OutputLimit = [
        [0, 224, 344, 181],
        [174, 0, 336, 176],
        [397, 442, 0, 398],
        [173, 217, 337, 0],
    ];
    hold(realistic, |from, to| {
        (from != to).then(|| of_request(from, to, &realistic_request(from)).count)
    });
    let small: OutputLimit = [[0, 9, 9, 8], [8, 0, 9, 8], [11, 12, 0, 11], [8, 9, 9, 0]];
    hold(small, |from, to| {
        (from != to).then(|| of_request(from, to, &small_request(from)).count)
    });
}

#[test]
fn responses_need_few_allocations() {
    // From responses to responses, the second one is the id, which is remembered with the key.
    let realistic: OutputLimit = [
        [4, 18, 22, 34],
        [27, 1, 25, 43],
        [25, 21, 1, 41],
        [32, 30, 34, 2],
    ];
    hold(realistic, |from, to| {
        Some(of_reply(from, to, realistic_reply(from)).count)
    });
    let small: OutputLimit = [
        [4, 8, 10, 17],
        [12, 1, 13, 20],
        [9, 8, 1, 17],
        [13, 12, 14, 2],
    ];
    hold(small, |from, to| {
        Some(of_reply(from, to, small_reply(from)).count)
    });
}

/// Of two hundred events: a text that grows needs new memory now and then, and the writer a buffer.
const NOW_AND_THEN: u64 = 30;

#[test]
fn stream_events_need_no_allocation() {
    // Where the model's name is put right, the event is copied; to skip what is nested, a parser
    // remembers its brackets.
    for (pieces, renamed) in [
        (Pieces::Text, 2),
        (Pieces::Reasoning, 2),
        (Pieces::Arguments, 3),
    ] {
        let most: OutputLimit = [[renamed, 0, 0, 0], [0; 4], [0, 0, 1, 0], [0; 4]];
        hold(most, |from, to| {
            let more = of_stream(from, to, pieces, 300) - of_stream(from, to, pieces, 100);
            Some(more.saturating_sub(NOW_AND_THEN).div_ceil(200))
        });
    }
}

#[test]
fn large_values_are_copied_once() {
    const SIZE: usize = 1 << 20;
    const ONCE: u64 = SIZE as u64 / 16 * 17 + 65_536;
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        let spent = of_request(from, to, &picture_request(from, SIZE)).bytes;
        assert!(spent <= ONCE, "{}: {spent} bytes", named((from, to)));
    }
}

#[test]
fn long_text_is_unescaped_once_and_encoded_once() {
    const SIZE: usize = 1 << 18;
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        let spent = of_request(from, to, &text_request(from, SIZE)).bytes;
        // Unescaping grows its memory as it goes.
        assert!(
            spent <= 7 * SIZE as u64,
            "{}: {spent} bytes",
            named((from, to))
        );
    }
}

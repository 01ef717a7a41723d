//! Reasoning between `<think>` tags, which comes in pieces of any size.

use bytes::Bytes;
use omniglot::formats::{Framing, Operation};
use omniglot::model::Format;
use omniglot::translate::{RequestSummary, ResponseTranslator};

use crate::measure::{check, excess};
use crate::responses::{MODEL, options};

const COUNT: usize = 4000;

/// What a tag may be followed by, again and again: beginnings of the other tag, and white space before the first one.
const PIECES: [&str; 6] = ["a", "<", "</think", "<think>", " ", "</think> <think>"];

fn stream(start: &str, piece: &str, count: usize, is_split: bool) -> Vec<u8> {
    let chunk = |text: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let text = match is_split {
        true => chunk(piece, "null").repeat(count),
        false => chunk(&piece.repeat(count), "null"),
    };
    let (first, last) = (chunk(start, "null"), chunk("", "\"stop\""));
    format!("{first}{text}{last}data: [DONE]\n\n").into_bytes()
}

fn translate(to: Format, wire: &[u8]) {
    let operation = Operation::Stream(Framing::Sse);
    let summary = RequestSummary::new(to.codec(), operation, Some(MODEL), b"{}");
    let mut options = options(true, 0);
    options.translation_state.think_tags = true;
    let translator = ResponseTranslator::new(
        to,
        Format::Chat,
        &summary.expect("a request"),
        options,
        "text/event-stream",
        usize::MAX,
    );
    let mut chunk = Some(Bytes::copy_from_slice(wire));
    let translated = translator
        .expect("a translator")
        .translate_chunk(&mut chunk, true);
    assert!(translated.is_ok());
}

#[test]
fn the_work_for_think_tags_grows_with_the_text() {
    let mut found = Vec::new();
    for piece in PIECES {
        for start in ["<think>", " "] {
            for is_split in [true, false] {
                let make = |count| stream(start, piece, count, is_split);
                let growth = excess(COUNT, make, |wire| translate(Format::Messages, wire));
                let shape = format!("{start:?} and {piece:?}, split: {is_split}");
                found.extend(growth.map(|growth| format!("{shape}: {growth}")));
            }
        }
    }
    check(found);
}

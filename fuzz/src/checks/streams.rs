//! Streams: the same wherever they are cut, in order, and ended so that the client's own kind reads them.

use crate::formats::{Framing, Operation};
use crate::model::{ApiError, Format};
use crate::sse::SseFrames;
use crate::translate::ResponseTranslator;
use bytes::Bytes;
use serde_json::Value;

use super::grammar::Grammar;
use super::input::{Input, asked, wanted};

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    let Input {
        from,
        to,
        dice,
        body,
    } = input;
    decoded(from, body);
    if from == Format::Native && to == Format::Native {
        let start = || start(from, to, Framing::Array, "application/json");
        cut_anywhere(&start, body, dice);
    }
    let start = || start(from, to, Framing::Sse, "text/event-stream");
    let (out, api_error) = cut_anywhere(&start, body, dice);
    match api_error {
        None if from != to => accepted(to, &out),
        None => passed(body, &out),
        Some(api_error) => assert!((400..600).contains(&api_error.status), "{api_error:?}"),
    }
    if from != to {
        payloads(&out, |_| {});
    }
}

fn start(from: Format, to: Format, framing: Framing, mime: &str) -> ResponseTranslator {
    let operation = match to {
        Format::Native => Operation::Stream(framing),
        Format::Chat | Format::Messages | Format::Responses | Format::Images => Operation::Generate,
    };
    let wanted = wanted(to, operation, true);
    let reply = ResponseTranslator::new(to, from, &wanted, asked(true), mime, usize::MAX);
    reply.unwrap_or_else(|api_error| panic!("{api_error:?}"))
}

/// All that goes out, its error included, and what broke it.
fn run(mut reply: ResponseTranslator, pieces: &[&[u8]]) -> (Vec<u8>, Option<ApiError>) {
    let mut out = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let mut chunk = Some(Bytes::copy_from_slice(piece));
        let pushed = reply.translate_chunk(&mut chunk, number + 1 == pieces.len());
        out.extend_from_slice(&chunk.unwrap_or_default());
        if let Err(api_error) = pushed {
            out.extend_from_slice(&reply.encode_stream_error(&api_error));
            return (out, Some(api_error));
        }
    }
    (out, None)
}

fn cut_anywhere(
    start: &dyn Fn() -> ResponseTranslator,
    body: &[u8],
    dice: [u8; 2],
) -> (Vec<u8>, Option<ApiError>) {
    let whole = run(start(), &[body]);
    let cut = |dice: u8| body.len() * usize::from(dice) / 256;
    let (first, second) = (cut(dice[0].min(dice[1])), cut(dice[0].max(dice[1])));
    let pieces = [&body[..first], &body[first..second], &body[second..]];
    assert_eq!(run(start(), &pieces), whole, "cut at {first} and {second}");
    if body.len() < 2000 {
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        if !bytes.is_empty() {
            assert_eq!(run(start(), &bytes), whole, "byte by byte");
        }
    }
    whole
}

/// The decoder keeps to the grammar, and says whether there was an end.
fn decoded(format: Format, body: &[u8]) {
    let mut decoder = format.codec().stream_decoder();
    let mut grammar = Grammar::default();
    let mut broken = false;
    SseFrames::default().push(body, |frame| {
        if let Some(data) = frame.data.filter(|data| !data.is_empty() && !broken) {
            broken = decoder
                .decode_event(&data, &mut |event| grammar.check(&event))
                .is_err();
        }
    });
    if !broken && decoder.finish(&mut |event| grammar.check(&event)).is_ok() {
        assert!(grammar.ended, "closed without an end");
    }
}

/// Every payload is JSON, but for the one word of one format.
fn payloads(bytes: &[u8], mut each: impl FnMut(&str)) {
    let mut frames = SseFrames::default();
    frames.push(bytes, |frame| {
        let data = frame.data.expect("a payload");
        if data != "[DONE]" {
            let value: Value = serde_json::from_str(&data).expect("JSON");
            assert!(value.is_object(), "{data}");
        }
        each(&data);
    });
    assert_eq!(frames.buffered(), 0, "events are complete");
}

/// A stream that we wrote to its end is one for the format's own reader.
pub fn accepted(format: Format, bytes: &[u8]) {
    let mut decoder = format.codec().stream_decoder();
    let mut grammar = Grammar::default();
    let mut refuse = |api_error: ApiError| {
        let said = String::from_utf8_lossy(bytes);
        panic!("{}: {api_error:?}\n{said}", format.name())
    };
    payloads(bytes, |data| {
        let read = decoder.decode_event(data, &mut |event| grammar.check(&event));
        read.unwrap_or_else(&mut refuse);
    });
    let closed = decoder.finish(&mut |event| grammar.check(&event));
    closed.unwrap_or_else(refuse);
    assert!(grammar.ended);
}

/// No event is lost of a stream of the client's own format. Only the model's name may change, and
/// what stands after the end.
fn passed(body: &[u8], out: &[u8]) {
    let names = |bytes: &[u8]| {
        let mut names = Vec::new();
        SseFrames::default().push(bytes, |frame| {
            if frame.data.is_some_and(|data| !data.is_empty()) {
                names.push(frame.name.into_owned());
            }
        });
        names
    };
    let (before, after) = (names(body), names(out));
    assert!(after.starts_with(&before), "{before:?} {after:?}");
}

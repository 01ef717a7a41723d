//! Streams are translated the same however they are split into chunks, with events in order, and so that the client's decoder accepts them.

use crate::formats::{Framing, Operation};
use crate::model::{ApiError, Format};
use crate::sse::SseFrames;
use crate::translate::ResponseTranslator;
use bytes::Bytes;
use serde_json::Value;

use super::grammar::Grammar;
use super::input::{Input, request_summary, response_options};

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    let Input {
        from,
        to,
        parameters,
        body,
    } = input;
    check_decoder(from, body);
    if from == Format::Native && to == Format::Native {
        let start = || start(from, to, Framing::Array, "application/json");
        check_splits(&start, body, parameters);
    }
    let start = || start(from, to, Framing::Sse, "text/event-stream");
    let (out, api_error) = check_splits(&start, body, parameters);
    match api_error {
        None if from != to => check_encoded_stream(to, &out),
        None => check_passthrough(to, body, &out),
        Some(api_error) => assert!((400..600).contains(&api_error.status), "{api_error:?}"),
    }
    if from != to {
        for_each_data(&out, |_| {});
    }
}

fn start(from: Format, to: Format, framing: Framing, content_type: &str) -> ResponseTranslator {
    let operation = match to {
        Format::Native => Operation::Stream(framing),
        Format::Chat | Format::Messages | Format::Responses | Format::Images => Operation::Generate,
    };
    let summary = request_summary(to, operation, true);
    let translator = ResponseTranslator::new(
        to,
        from,
        &summary,
        response_options(true),
        content_type,
        usize::MAX,
    );
    translator.unwrap_or_else(|api_error| panic!("{api_error:?}"))
}

/// Translates a stream of chunks; returns the output and the error that ended it.
fn run(mut translator: ResponseTranslator, chunks: &[&[u8]]) -> (Vec<u8>, Option<ApiError>) {
    let mut out = Vec::new();
    for (number, bytes) in chunks.iter().enumerate() {
        let mut chunk = Some(Bytes::copy_from_slice(bytes));
        let translated = translator.translate_chunk(&mut chunk, number + 1 == chunks.len());
        out.extend_from_slice(&chunk.unwrap_or_default());
        if let Err(api_error) = translated {
            out.extend_from_slice(&translator.encode_stream_error(&api_error));
            return (out, Some(api_error));
        }
    }
    (out, None)
}

/// The output is the same however the body is split into chunks; returns it.
fn check_splits(
    start: &dyn Fn() -> ResponseTranslator,
    body: &[u8],
    parameters: [u8; 2],
) -> (Vec<u8>, Option<ApiError>) {
    let whole = run(start(), &[body]);
    let position = |parameter: u8| body.len() * usize::from(parameter) / 256;
    let (first, second) = (
        position(parameters[0].min(parameters[1])),
        position(parameters[0].max(parameters[1])),
    );
    let chunks = [&body[..first], &body[first..second], &body[second..]];
    assert_eq!(
        run(start(), &chunks),
        whole,
        "split at {first} and {second}"
    );
    if body.len() < 2000 {
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        if !bytes.is_empty() {
            assert_eq!(run(start(), &bytes), whole, "byte by byte");
        }
    }
    whole
}

/// The decoder's events are in order, and end if the decoder reports no error.
fn check_decoder(format: Format, body: &[u8]) {
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

/// The data of every event is a JSON object or `[DONE]`.
fn for_each_data(bytes: &[u8], mut each: impl FnMut(&str)) {
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

/// The decoder of a format accepts a complete stream that we encoded.
pub fn check_encoded_stream(format: Format, bytes: &[u8]) {
    let mut decoder = format.codec().stream_decoder();
    let mut grammar = Grammar::default();
    let mut refuse = |api_error: ApiError| {
        let text = String::from_utf8_lossy(bytes);
        panic!("{}: {api_error:?}\n{text}", format.name())
    };
    for_each_data(bytes, |data| {
        let read = decoder.decode_event(data, &mut |event| grammar.check(&event));
        read.unwrap_or_else(&mut refuse);
    });
    let closed = decoder.finish(&mut |event| grammar.check(&event));
    closed.unwrap_or_else(refuse);
    assert!(grammar.ended);
}

/// Passthrough loses no event. Only the model's name may change, events after the end, the names of events for clients
/// that do not read them, and the word that ends chat streams where native clients would take it for JSON.
fn check_passthrough(format: Format, body: &[u8], out: &[u8]) {
    let reads_names = format.codec().allows_any_framing();
    let is_left_out = |data: &str| format == Format::Native && data == "[DONE]";
    let names = |bytes: &[u8]| {
        let mut names = Vec::new();
        SseFrames::default().push(bytes, |frame| {
            if frame
                .data
                .is_some_and(|data| !data.is_empty() && !is_left_out(&data))
            {
                names.push(match reads_names {
                    true => frame.name.into_owned(),
                    false => String::new(),
                });
            }
        });
        names
    };
    let (before, after) = (names(body), names(out));
    assert!(after.starts_with(&before), "{before:?} {after:?}");
}

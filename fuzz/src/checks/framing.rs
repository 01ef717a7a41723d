//! Server-sent events are parsed as another parser does, however they are split into chunks, and no byte is lost. Event
//! streams of AWS are parsed alike however they are split, and give back what was written.

use crate::event_stream::{EventStreamError, EventStreamMessages, encode_event_stream_message};
use crate::sse::{SseFrame, SseFrames};
use bytes::Bytes;
use sse_core::{SseDecoder, SseEvent};

use super::input::Input;

/// Name and data of each event.
type Events = Vec<(String, String)>;

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    let body = input.body;
    let position = |parameter: u8| body.len() * usize::from(parameter) / 256;
    let [first, second] = input.parameters;
    let (first, second) = (position(first.min(second)), position(first.max(second)));
    check_event_stream(body, first, second);
    let whole = parse(&[body]);
    assert_eq!(
        whole,
        parse(&[&body[..first], &body[first..second], &body[second..]])
    );
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(whole, parse(&bytes));
    assert_eq!(whole.1, body, "no byte is lost");
    if str::from_utf8(body).is_ok() {
        assert_eq!(Some(whole.0), parse_by_sse_core(body).or(None));
    }
}

/// Checks bytes as they are, and in messages that are right.
fn check_event_stream(body: &[u8], first: usize, second: usize) {
    let chunks = [&body[..first], &body[first..second], &body[second..]];
    assert_eq!(parse_event_stream(&[body]), parse_event_stream(&chunks));
    let mut written = Vec::new();
    for chunk in chunks {
        encode_event_stream_message(&[(":message-type", "event")], chunk, &mut written);
    }
    let expected = chunks.map(<[u8]>::to_vec).to_vec();
    let read = parse_event_stream(&[&written]);
    assert_eq!(read, (expected, Ok(())));
    let cut = written.len() * (first + 1) / (body.len() + 2);
    let parts = [&written[..cut], &written[cut..]];
    assert_eq!(parse_event_stream(&parts), read);
}

/// Returns the payloads of an event stream, and how it ended.
fn parse_event_stream(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), EventStreamError>) {
    let (mut messages, mut payloads) = (EventStreamMessages::default(), Vec::new());
    for chunk in chunks {
        let pushed = messages.push(chunk, 1 << 20, |message| {
            payloads.push(message.payload.to_vec());
        });
        if pushed.is_err() {
            return (payloads, pushed);
        }
    }
    let finished = messages.finish();
    (payloads, finished)
}

/// Returns the events by our parser, and all bytes of its frames.
fn parse(chunks: &[&[u8]]) -> (Events, Vec<u8>) {
    let (mut frames, mut events, mut raw) = (SseFrames::default(), Vec::new(), Vec::new());
    let mut add = |frame: SseFrame<'_>| {
        if let (Some(at), Some(data)) = (frame.data_at, &frame.data) {
            assert_eq!(&frame.raw[at..at + data.len()], data.as_bytes());
        }
        raw.extend_from_slice(frame.raw);
        let name = match &*frame.name {
            "" => "message",
            name => name,
        };
        events.extend(frame.data.map(|data| (name.to_owned(), data.into_owned())));
    };
    for chunk in chunks {
        frames.push(chunk, &mut add);
    }
    let mut rest = Vec::new();
    frames.finish(|frame| rest.extend_from_slice(frame.raw));
    raw.extend_from_slice(&rest);
    (events, raw)
}

/// Returns the events by the parser of `sse_core`.
fn parse_by_sse_core(bytes: &[u8]) -> Option<Events> {
    let (mut decoder, mut buffer) = (SseDecoder::new(), Bytes::copy_from_slice(bytes));
    let mut events = Vec::new();
    while let Some(event) = decoder.next(&mut buffer) {
        if let SseEvent::Message(message) = event.ok()? {
            events.push((message.event.into_owned(), message.data.to_string()));
        }
    }
    Some(events)
}

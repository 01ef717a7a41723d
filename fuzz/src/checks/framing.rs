//! Server-sent events: the same as another reader sees, wherever they are cut, and no byte is lost.

use crate::sse::{SseFrame, SseFrames};
use bytes::Bytes;
use sse_core::{SseDecoder, SseEvent};

use super::input::Input;

type Named = Vec<(String, String)>;

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    let body = input.body;
    let cut = |dice: u8| body.len() * usize::from(dice) / 256;
    let [first, second] = input.dice;
    let (first, second) = (cut(first.min(second)), cut(first.max(second)));
    let whole = ours(&[body]);
    assert_eq!(
        whole,
        ours(&[&body[..first], &body[first..second], &body[second..]])
    );
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(whole, ours(&bytes));
    assert_eq!(whole.1, body, "no byte is lost");
    if str::from_utf8(body).is_ok() {
        assert_eq!(Some(whole.0), theirs(body).or(None));
    }
}

/// The complete events, and all bytes that were handed over.
fn ours(pieces: &[&[u8]]) -> (Named, Vec<u8>) {
    let (mut frames, mut events, mut raw) = (SseFrames::default(), Vec::new(), Vec::new());
    let mut note = |frame: SseFrame<'_>| {
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
    for piece in pieces {
        frames.push(piece, &mut note);
    }
    let mut rest = Vec::new();
    frames.finish(|frame| rest.extend_from_slice(frame.raw));
    raw.extend_from_slice(&rest);
    (events, raw)
}

fn theirs(bytes: &[u8]) -> Option<Named> {
    let (mut decoder, mut buffer) = (SseDecoder::new(), Bytes::copy_from_slice(bytes));
    let mut events = Vec::new();
    while let Some(event) = decoder.next(&mut buffer) {
        if let SseEvent::Message(message) = event.ok()? {
            events.push((message.event.into_owned(), message.data.to_string()));
        }
    }
    Some(events)
}

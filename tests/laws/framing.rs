//! The decoder of server-sent events agrees with that of another crate.

use bytes::Bytes;
use omniglot::sse::{SseFrame, SseFrames};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sse_core::{SseDecoder, SseEvent};

use crate::{many, pieces};

const LINES: &[&str] = &[
    "",
    "",
    "",
    "",
    "data: {\"a\":1}",
    "data:x",
    "data",
    "data:",
    "data:  two",
    "data: é😀",
    "data: a: b",
    "event: ping",
    "event:",
    "event",
    ": comment",
    ":",
    "id: 7",
    "retry: 10",
    "unknown: x",
    "dat",
    "datax: y",
    " data: z",
    "data : z",
    "data:\u{feff}",
    "\u{feff}data: q",
    "eventdata: 1",
];

fn streams() -> impl Strategy<Value = Vec<u8>> {
    let line = (select(LINES), select(&["\n", "\r\n", "\r"][..]));
    (
        any::<bool>(),
        vec(line, 0..14),
        select(&["", "data: cut", "\r"][..]),
    )
        .prop_map(|(mark, lines, rest)| {
            let mut bytes = if mark {
                b"\xef\xbb\xbf".to_vec()
            } else {
                Vec::new()
            };
            for (line, end) in lines {
                bytes.extend_from_slice(line.as_bytes());
                bytes.extend_from_slice(end.as_bytes());
            }
            bytes.extend_from_slice(rest.as_bytes());
            bytes
        })
}

type Named = Vec<(String, String)>;

fn theirs(bytes: &[u8]) -> Named {
    let (mut decoder, mut buffer) = (SseDecoder::new(), Bytes::copy_from_slice(bytes));
    let mut events = Vec::new();
    while let Some(event) = decoder.next(&mut buffer) {
        if let SseEvent::Message(message) = event.expect("a small event") {
            events.push((message.event.into_owned(), message.data.to_string()));
        }
    }
    events
}

/// The complete events, and all bytes that were handed over.
fn ours(pieces: &[&[u8]]) -> (Named, Vec<u8>) {
    let (mut frames, mut events, mut raw) = (SseFrames::default(), Vec::new(), Vec::new());
    let mut note = |frame: SseFrame<'_>| {
        if let (Some(at), Some(data)) = (frame.data_at, &frame.data) {
            assert_eq!(&frame.raw[at..at + data.len()], data.as_bytes());
        }
        raw.extend_from_slice(frame.raw);
        let name = if frame.name.is_empty() {
            "message"
        } else {
            &*frame.name
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

proptest! {
    #![proptest_config(many())]

    #[test]
    fn events_equal_those_of_another_decoder_wherever_they_are_cut(
        bytes in streams(),
        cuts in vec(any::<u8>(), 0..5),
    ) {
        let (events, raw) = ours(&pieces(&bytes, &cuts));
        prop_assert_eq!(events, theirs(&bytes));
        prop_assert_eq!(raw, bytes);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_framed(
        bytes in vec(select(&b"data: \n\n\r\n:x\xff\xef\xbb\xbf"[..]), 0..40),
        cuts in vec(any::<u8>(), 0..4),
    ) {
        let (events, raw) = ours(&[&bytes]);
        prop_assert_eq!(&raw, &bytes);
        prop_assert_eq!(ours(&pieces(&bytes, &cuts)), (events, raw));
    }
}

//! Errors of upstreams: whatever they say, every client is told in its own words, whole and in a stream.

use crate::formats::{InterruptedStream, ResponseObserver};
use crate::model::Format;
use crate::sse::{SseFrames, SseWriter};
use crate::translate;

use super::input::{Input, object};

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    let status = 400 + u16::from(input.dice[0]) % 200;
    let api_error = input.from.codec().decode_error(status, input.body);
    assert!((400..600).contains(&api_error.status), "{api_error:?}");
    assert!(!api_error.message.is_empty());
    for to in Format::ALL {
        let codec = to.codec();
        let (told, body) = translate::error(input.from, to, status, input.body, "req_1");
        assert!((400..600).contains(&told), "{api_error:?}");
        object(&body);
        let read = codec.decode_error(told, &body);
        // One format says in front of it that a prompt is too long.
        assert!(read.message.ends_with(&api_error.message), "{}", to.name());
        let mut out = SseWriter::default();
        let passed = InterruptedStream {
            observer: &ResponseObserver::default(),
            model: "m",
        };
        codec.encode_stream_error(&api_error, &passed, &mut out);
        let mut events = 0;
        SseFrames::default().push(&out.take(), |frame| {
            object(frame.data.expect("a payload").as_bytes());
            events += 1;
        });
        assert!(events > 0, "{}", to.name());
    }
}

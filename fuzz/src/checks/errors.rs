//! Errors of upstreams are encoded for every client format, as JSON and in a stream.

use crate::formats::{InterruptedStream, ResponseObserver};
use crate::model::Format;
use crate::sse::{SseFrames, SseWriter};
use crate::translate;

use super::input::{Input, assert_object};

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    let status = 400 + u16::from(input.parameters[0]) % 200;
    let api_error = input.from.codec().decode_error(status, input.body);
    assert!((400..600).contains(&api_error.status), "{api_error:?}");
    assert!(!api_error.message.is_empty());
    for to in Format::ALL {
        let codec = to.codec();
        let (client_status, body) = translate::error(input.from, to, status, input.body, "req_1");
        assert!((400..600).contains(&client_status), "{api_error:?}");
        assert_object(&body);
        let read = codec.decode_error(client_status, &body);
        // One format puts a prefix before the message if a prompt is too long.
        assert!(read.message.ends_with(&api_error.message), "{}", to.name());
        let mut out = SseWriter::default();
        let interrupted = InterruptedStream {
            observer: &ResponseObserver::default(),
            model: "m",
        };
        codec.encode_stream_error(&api_error, &interrupted, &mut out);
        let mut events = 0;
        SseFrames::default().push(&out.take(), |frame| {
            assert_object(frame.data.expect("a payload").as_bytes());
            events += 1;
        });
        assert!(events > 0, "{}", to.name());
    }
}

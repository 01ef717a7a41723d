//! Whole replies: whatever is read can be said to every client, whole and in pieces, so that its own kind reads it.

use crate::formats::Operation;
use crate::model::{Format, Losses, Response};
use crate::sse::SseWriter;
use crate::translate::ResponseTranslator;
use bytes::Bytes;
use serde_json::Value;

use super::input::{Input, asked, object, wanted};
use super::streams::accepted;

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    passes(input.from, input.body);
    let decoded = input
        .from
        .codec()
        .decode_response(input.body, &mut Losses::default());
    let response = match decoded {
        Ok(response) => response,
        Err(api_error) => return assert!(!api_error.message.is_empty()),
    };
    for to in Format::ALL {
        whole(to, &response);
        in_pieces(to, &response);
    }
}

fn whole(to: Format, response: &Response<'_>) {
    let mut losses = Losses::default();
    let body = to
        .codec()
        .encode_response(response, &asked(false), &mut losses);
    object(&body);
    if let Err(api_error) = to.codec().decode_response(&body, &mut losses) {
        panic!(
            "{}: {api_error:?}\n{}",
            to.name(),
            String::from_utf8_lossy(&body)
        );
    }
}

fn in_pieces(to: Format, response: &Response<'_>) {
    let mut encoder = to.codec().stream_encoder(&asked(true));
    let mut out = SseWriter::default();
    response.unfold(&mut |event| encoder.encode_event(event, &mut out));
    accepted(to, &out.take());
}

/// A reply of the client's own format changes nothing but the model's name.
fn passes(format: Format, body: &[u8]) {
    let wanted = wanted(format, Operation::Generate, false);
    let json = "application/json";
    let reply = ResponseTranslator::new(format, format, &wanted, asked(false), json, usize::MAX);
    let (mut reply, mut chunk) = (reply.expect("JSON"), Some(Bytes::copy_from_slice(body)));
    if reply.translate_chunk(&mut chunk, true).is_err() {
        return;
    }
    let rest = reply.take_remaining().into_bytes();
    let passed = [&*chunk.expect("a body"), &*rest].concat();
    // What is no text passes as well; nothing of it can be compared.
    let Ok(mut before) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let after: Value = serde_json::from_slice(&passed).expect("JSON");
    if passed != body {
        assert_eq!(after["model"], "m");
        before["model"] = "m".into();
    }
    assert_eq!(before, after);
}

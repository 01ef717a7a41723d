//! A response that can be decoded is encoded for every client format, as JSON and as a stream, so that its decoder accepts it.

use crate::formats::Operation;
use crate::model::{Format, Losses, Response};
use crate::sse::SseWriter;
use crate::translate::ResponseTranslator;
use bytes::Bytes;
use serde_json::Value;

use super::input::{Input, assert_object, request_summary, response_options};
use super::streams::check_encoded_stream;

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    check_passthrough(input.from, input.body);
    let decoded = input
        .from
        .codec()
        .decode_response(input.body, &mut Losses::default());
    let response = match decoded {
        Ok(response) => response,
        Err(api_error) => return assert!(!api_error.message.is_empty()),
    };
    for to in Format::ALL {
        check_json(to, &response);
        check_stream(to, &response);
    }
}

fn check_json(to: Format, response: &Response<'_>) {
    let mut losses = Losses::default();
    let body = to
        .codec()
        .encode_response(response, &response_options(false), &mut losses);
    assert_object(&body);
    if let Err(api_error) = to.codec().decode_response(&body, &mut losses) {
        panic!(
            "{}: {api_error:?}\n{}",
            to.name(),
            String::from_utf8_lossy(&body)
        );
    }
}

fn check_stream(to: Format, response: &Response<'_>) {
    let mut encoder = to.codec().stream_encoder(&response_options(true));
    let mut out = SseWriter::default();
    response.unfold(&mut |event| encoder.encode_event(event, &mut out));
    check_encoded_stream(to, &out.take());
}

/// Passthrough changes nothing but the model's name.
fn check_passthrough(format: Format, body: &[u8]) {
    let summary = request_summary(format, Operation::Generate, false);
    let content_type = "application/json";
    let translator = ResponseTranslator::new(
        format,
        format,
        &summary,
        response_options(false),
        content_type,
        usize::MAX,
    );
    let (mut translator, mut chunk) = (
        translator.expect("JSON"),
        Some(Bytes::copy_from_slice(body)),
    );
    if translator.translate_chunk(&mut chunk, true).is_err() {
        return;
    }
    let rest = translator.take_remaining().into_bytes();
    let passed = [&*chunk.expect("a body"), &*rest].concat();
    // Invalid JSON is passed through too, but cannot be compared.
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

//! How a response is handled, by its content type and its status.

mod partial_counts;

use super::*;

fn options() -> ResponseOptions {
    ResponseOptions {
        model: "m".to_owned(),
        stream: true,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_1".to_owned(),
        created_at: 1,
        translation_state: crate::model::TranslationState::default(),
    }
}

fn passthrough(format: Format) -> ResponseTranslator {
    let summary = RequestSummary::new(
        Format::Native.codec(),
        Operation::Stream(Framing::Sse),
        Some("m"),
        b"{}",
    );
    let summary = summary.expect("a request");
    ResponseTranslator::new(
        format,
        format,
        &summary,
        options(),
        "text/event-stream",
        1024,
    )
    .expect("a stream of the client's own")
}

/// Returns what is sent for a chunk, and the keep-alive that would follow it.
fn after(translator: &mut ResponseTranslator, bytes: &'static str) -> (Bytes, Option<Bytes>) {
    let mut chunk = Some(Bytes::from_static(bytes.as_bytes()));
    translator
        .translate_chunk(&mut chunk, false)
        .expect("a good chunk");
    (chunk.unwrap_or_default(), translator.encode_keep_alive())
}

#[test]
fn keep_alives_are_sent_where_the_format_has_them() {
    let comment = Some(Bytes::from_static(b": ping\n\n"));
    let event = Some(Bytes::from_static(
        b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
    ));
    let mut messages = passthrough(Format::Messages);
    let start = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
    let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    assert_eq!(after(&mut messages, ": hi\n\n").1, comment);
    assert_eq!(after(&mut messages, start), (start.into(), event.clone()));
    // An incomplete event is not sent: nothing can stand inside of it.
    assert_eq!(after(&mut messages, "event: pi"), (Bytes::new(), event));
    after(&mut messages, "ng\ndata: {\"type\":\"ping\"}\n\n");
    assert_eq!(after(&mut messages, stop).1, None);
    let mut chat = passthrough(Format::Chat);
    let word = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    assert_eq!(after(&mut chat, word).1, comment);
    assert_eq!(after(&mut chat, "data: [DONE]\n\n").1, None);
}

#[test]
fn a_native_stream_holds_events_only() {
    let mut native = passthrough(Format::Native);
    let event = "data: {\"candidates\":[{\"content\":{}}]}\n\n";
    assert_eq!(after(&mut native, event), (event.into(), None));
    assert_eq!(after(&mut native, ": hi\n\n"), (Bytes::new(), None));
    let both = "data: {\"candidates\":[{\"content\":{}}]}\n\n: hi\n\ndata: {}\n\n";
    let (out, _) = after(&mut native, both);
    assert_eq!(out, both.replace(": hi\n\n", ""));
    // A line end that was split between two chunks is no comment.
    assert_eq!(after(&mut native, "data: {}\r\n\r").0, "data: {}\r\n\r");
    assert_eq!(
        after(&mut native, "\ndata: {}\r\n\r\n").0,
        "\ndata: {}\r\n\r\n"
    );
}

#[test]
fn the_losses_of_a_response_are_taken_once_at_its_end() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"Hm."}]},"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#;
    for (stream, mime, sent) in [
        (false, "application/json", body.to_owned()),
        (true, "text/event-stream", format!("data: {body}\n\n")),
    ] {
        let asking = format!(r#"{{"model":"m","stream":{stream}}}"#);
        let codec = Format::Chat.codec();
        let summary = RequestSummary::new(codec, Operation::Generate, None, asking.as_bytes());
        let summary = summary.expect("a request");
        let translator = ResponseTranslator::new(
            Format::Chat,
            Format::Native,
            &summary,
            options(),
            mime,
            1024,
        );
        let mut translator = translator.expect("a response");
        let translated = translator.translate_chunk(&mut Some(sent.into()), false);
        translated.expect("a good chunk");
        assert_eq!(translator.take_losses(), Losses::default());
        translator
            .translate_chunk(&mut None, true)
            .expect("a good end");
        assert_eq!(translator.take_losses().0.len(), 1, "{mime}");
        assert_eq!(translator.take_losses(), Losses::default());
    }
}

//! Tests of encoding streams for a client: the order of chunks, both framings, and errors.

use serde_json::{Value, json};

use super::{call, choice, encode, options, part, response, rich, text};
use crate::formats::native::Native;
use crate::formats::{
    ErrorCodec as _, Framing, InterruptedStream, ResponseObserver, StreamCodec as _, StreamEncoder,
};
use crate::model::{ApiError, ApiErrorKind, Block, Delta, Event, Finish, PartKind, Response};
use crate::sse::SseWriter;

fn encoder(framing: Framing) -> Box<dyn StreamEncoder> {
    Native.stream_encoder(&options(framing))
}

/// Encodes a stream, with an error before the event of that number.
fn stream(response: &Response<'_>, framing: Framing, error_at: Option<usize>) -> String {
    let (mut encoder, mut out) = (encoder(framing), SseWriter::default());
    let mut number = 0;
    response.unfold(&mut |event| {
        if Some(number) == error_at {
            encoder.encode_error(
                &ApiError::new(ApiErrorKind::Overloaded, "Overloaded."),
                &mut out,
            );
        }
        encoder.encode_event(event, &mut out);
        number += 1;
    });
    String::from_utf8(out.take().to_vec()).unwrap()
}

/// Splits a stream into chunks as strictly as the least tolerant client does.
fn chunks(stream: &str, framing: Framing) -> Vec<Value> {
    match framing {
        Framing::Array => serde_json::from_str(stream).expect("one JSON array"),
        Framing::Sse => {
            assert!(stream.ends_with("\n\n"));
            let lines = stream.split_terminator("\n\n");
            lines
                .map(|line| line.strip_prefix("data: ").expect("a data line"))
                .map(|json| serde_json::from_str(json).expect("one line of JSON"))
                .collect()
        }
    }
}

fn encoded(events: Vec<Event<'_>>) -> Vec<Value> {
    let (mut encoder, mut out) = (encoder(Framing::Sse), SseWriter::default());
    for event in events {
        encoder.encode_event(event, &mut out);
    }
    chunks(std::str::from_utf8(&out.take()).unwrap(), Framing::Sse)
}

fn start() -> Event<'static> {
    Event::Start {
        id: "msg_1".into(),
        model: "m-1".into(),
        created: 0,
    }
}

fn open(block: Block<'static>) -> Event<'static> {
    Event::Open { choice: 0, block }
}

fn delta(delta: Delta<'static>) -> Event<'static> {
    Event::Delta { choice: 0, delta }
}

/// Joins chunks as a client does: neighbouring text of one kind becomes one part.
fn join_chunks(chunks: &[Value]) -> Value {
    let mut whole = chunks.last().unwrap().clone();
    for (number, candidate) in whole["candidates"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        let mut parts: Vec<Value> = Vec::new();
        let found = chunks
            .iter()
            .flat_map(|chunk| chunk["candidates"].as_array().unwrap());
        let found = found.filter(|candidate| candidate["index"] == number);
        for part in found.flat_map(|candidate| candidate["content"]["parts"].as_array().unwrap()) {
            match parts.last_mut() {
                Some(before) if joins(before, part) => {
                    let text = [&before["text"], &part["text"]].map(|text| text.as_str().unwrap());
                    before["text"] = text.concat().into();
                    if let Some(signature) = part.get("thoughtSignature") {
                        before["thoughtSignature"] = signature.clone();
                    }
                }
                _ => parts.push(part.clone()),
            }
        }
        parts.retain(|part| part["text"] != "" || part.get("thoughtSignature").is_some());
        candidate["content"]["parts"] = parts.into();
    }
    whole
}

fn joins(before: &Value, part: &Value) -> bool {
    before["text"].is_string() && part["text"].is_string() && before["thought"] == part["thought"]
}

#[test]
fn the_chunks_together_are_the_json_response() {
    for response in [
        rich(),
        response(vec![]),
        response(vec![choice(vec![], Finish::Filtered(None))]),
        response(vec![choice(
            vec![text("a"), call("f", "{\"x\":")],
            Finish::Length,
        )]),
        response(vec![choice(
            vec![call("f", "{\"x\":"), text("a")],
            Finish::Length,
        )]),
        response(vec![choice(
            vec![call("f", ""), call("g", "nonsense")],
            Finish::Tools,
        )]),
    ] {
        for framing in [Framing::Sse, Framing::Array] {
            let found = chunks(&stream(&response, framing, None), framing);
            assert_eq!(join_chunks(&found), encode(&response));
        }
    }
}

#[test]
fn an_error_at_any_event_ends_the_stream() {
    let response = rich();
    let mut events = 0;
    response.unfold(&mut |_| events += 1);
    for framing in [Framing::Sse, Framing::Array] {
        let whole = chunks(&stream(&response, framing, None), framing);
        for at in 0..events {
            let cut = stream(&response, framing, Some(at));
            assert!(
                cut.contains("{\"error\":"),
                "clients look at the first key only"
            );
            let mut found = chunks(&cut, framing);
            let error =
                json!({"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}});
            assert_eq!(found.pop(), Some(error), "at {at}");
            assert_eq!(found, whole[..found.len()]);
        }
    }
}

#[test]
fn nothing_follows_the_end() {
    for framing in [Framing::Sse, Framing::Array] {
        let (mut encoder, mut out) = (encoder(framing), SseWriter::default());
        encoder.encode_event(start(), &mut out);
        encoder.encode_event(Event::End, &mut out);
        assert!(!out.take().is_empty());
        encoder.encode_error(&ApiError::bad_gateway("late"), &mut out);
        encoder.encode_event(delta(Delta::Text("late".into())), &mut out);
        assert!(out.is_empty());
    }
}

#[test]
fn an_array_arrives_element_by_element() {
    let (mut encoder, mut out) = (encoder(Framing::Array), SseWriter::default());
    let mut next = |event| {
        encoder.encode_event(event, &mut out);
        String::from_utf8(out.take().to_vec()).unwrap()
    };
    assert_eq!(next(start()), "");
    assert_eq!(next(open(Block::Text)), "");
    assert!(next(delta(Delta::Text("a".into()))).starts_with("[{"));
    let second = next(delta(Delta::Text("b".into())));
    assert!(second.starts_with(",\n{") && second.ends_with('}'));
    assert!(next(Event::End).ends_with("}]"));
}

#[test]
fn line_breaks_in_text_are_escaped() {
    let odd = "a\u{2028}b\u{2029}c\u{85}d\ne";
    let multiline = response(vec![choice(
        vec![part(PartKind::Text(odd.into()))],
        Finish::Stop,
    )]);
    let sent = stream(&multiline, Framing::Sse, None);
    assert!(!sent.contains(['\u{2028}', '\u{2029}', '\u{85}', '\r']));
    let found = chunks(&sent, Framing::Sse);
    assert_eq!(
        found[0]["candidates"][0]["content"]["parts"][0]["text"],
        odd
    );

    let mut out = SseWriter::default();
    let passed = InterruptedStream {
        observer: &ResponseObserver::default(),
        model: "m",
    };
    Native.encode_stream_error(&ApiError::bad_gateway(odd), &passed, &mut out);
    let sent = String::from_utf8(out.take().to_vec()).unwrap();
    assert!(!sent.contains(['\u{2028}', '\u{2029}', '\u{85}']));
    assert_eq!(chunks(&sent, Framing::Sse)[0]["error"]["message"], odd);
}

#[test]
fn an_unfinished_candidate_has_the_reason_other() {
    let found = encoded(vec![start(), open(Block::Text), Event::End]);
    assert_eq!(found[0]["candidates"][0]["finishReason"], "OTHER");
}

//! Decoding streams.

use serde_json::{Value, json};

use crate::formats::StreamCodec as _;
use crate::model::{ApiError, Event, Finish, Fold, Issuer, PartKind, Response, Signature, Usage};
use crate::sse::{SseFrames, SseWriter};

/// Decodes events and folds them into a response.
fn fold(events: &[Value]) -> Result<Response<'static>, ApiError> {
    let mut decoder = super::super::Messages.stream_decoder();
    let mut fold = Fold::default();
    let mut open = false;
    let mut out = |event: Event<'_>| {
        match &event {
            Event::Open { .. } => assert!(!std::mem::replace(&mut open, true), "one at a time"),
            Event::Close { .. } => assert!(std::mem::replace(&mut open, false), "was open"),
            Event::Finish { .. } | Event::End => assert!(!open, "all closed"),
            _ => {}
        }
        fold.push(event);
    };
    for event in events {
        decoder.decode_event(&event.to_string(), &mut out)?;
    }
    decoder.finish(&mut out)?;
    Ok(fold.finish())
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": [],
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 80, "output_tokens": 1}}})
}

fn open(index: u32, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end() -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn a_response_may_be_there_when_the_stream_begins() {
    let web_page = json!({"type": "web_search_result_location", "url": "https://a.example/"});
    let mut begin = start();
    begin["message"]["content"] = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "c2k="},
        {"type": "text", "text": "Two.", "citations": [web_page]},
        {"type": "tool_use", "id": "t", "name": "look", "input": {"n": 1}, "caller": {"type": "direct"}},
    ]);
    begin["message"]["stop_reason"] = "tool_use".into();
    let begun = [begin, json!({"type": "message_stop"})];
    let response = fold(&begun).expect("a whole response");
    let choice = &response.choices[0];
    assert_eq!((choice.parts.len(), &choice.finish), (3, &Finish::Tools));
    assert_eq!((choice.citations[0].start, choice.citations[0].end), (0, 4));
    let PartKind::Call(call) = &choice.parts[2].kind else {
        panic!("{choice:?}");
    };
    assert_eq!(call.arguments.to_text(), r#"{"n":1}"#);

    // Blocks that are sent once more are the same; those after them are new, and so is the reason.
    let mut events = vec![begun[0].clone()];
    events.extend([open(2, begun[0]["message"]["content"][2].clone()), stop(2)]);
    events.push(open(3, json!({"type": "text", "text": ""})));
    events.push(delta(3, json!({"type": "text_delta", "text": "Three."})));
    events.push(stop(3));
    events.extend(end());
    let choice = &fold(&events).expect("a response").choices[0].clone();
    assert_eq!((choice.parts.len(), &choice.finish), (4, &Finish::Stop));
    // Without a reason, the response is not complete.
    let mut cut = begun;
    cut[0]["message"]["stop_reason"] = Value::Null;
    assert_eq!(fold(&cut).expect_err("cut off").status, 502);
}

#[test]
fn hosted_tools_pings_and_unknown_events_are_skipped() {
    let mut events = vec![
        start(),
        json!({"type": "ping"}),
        start(),
        open(
            0,
            json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        ),
        delta(
            0,
            json!({"type": "input_json_delta", "partial_json": "{\"query\":1}"}),
        ),
        stop(0),
        open(
            1,
            json!({"type": "web_search_tool_result", "content": [{"text": 1}]}),
        ),
        stop(1),
        open(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Café."})),
        delta(
            2,
            json!({"type": "citations_delta", "citation": {"type":
            "web_search_result_location", "url": "https://a.example", "title": null}}),
        ),
        delta(
            2,
            json!({"type": "citations_delta", "citation": {"type": "char_location"}}),
        ),
        stop(2),
        json!({"type": "news"}),
    ];
    events.extend(end());
    let response = fold(&events).expect("a good stream");
    let choice = &response.choices[0];
    assert_eq!(choice.parts.len(), 1);
    assert_eq!(choice.parts[0].kind, PartKind::Text("Café.".into()));
    assert_eq!((choice.citations[0].start, choice.citations[0].end), (0, 5));
    assert_eq!(choice.citations.len(), 1);
    assert_eq!(choice.finish, Finish::Stop);
    let usage = Usage {
        input: 85,
        cached: 80,
        output: 9,
        ..Usage::default()
    };
    assert_eq!(response.usage, Some(usage));
}

#[test]
fn overlapping_blocks_are_decoded_one_after_the_other() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let arguments = |index, json: &str| {
        delta(
            index,
            json!({"type": "input_json_delta", "partial_json": json}),
        )
    };
    let mut events = vec![start(), open(0, call("a")), open(1, call("b"))];
    events.extend([
        arguments(1, "{\"b\":1}"),
        arguments(0, "{\"a\":1}"),
        stop(1),
        stop(0),
    ]);
    events.extend(end());
    let response = fold(&events).expect("a good stream");
    let calls = response.choices[0]
        .parts
        .iter()
        .map(|part| match &part.kind {
            PartKind::Call(call) => (
                call.id.clone().unwrap_or_default(),
                call.arguments.to_text(),
            ),
            other => panic!("{other:?}"),
        });
    let calls: Vec<_> = calls.collect();
    assert_eq!(calls[0], ("a".into(), "{\"a\":1}".into()));
    assert_eq!(calls[1], ("b".into(), "{\"b\":1}".into()));
}

#[test]
fn arguments_may_come_with_the_block_start() {
    let block = json!({"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}});
    let mut events = vec![start(), open(0, block), stop(0)];
    events.extend(end());
    let response = fold(&events).expect("a good stream");
    let PartKind::Call(call) = &response.choices[0].parts[0].kind else {
        panic!("a call");
    };
    assert_eq!(call.arguments.to_text(), "{\"x\":1}");
}

#[test]
fn a_stream_must_be_one_complete_response() {
    assert_eq!(fold(&[start()]).expect_err("cut").status, 502);
    let [finish, stop] = end();
    assert_eq!(fold(&[start(), finish]).expect_err("cut").status, 502);
    assert_eq!(fold(&[start(), stop.clone()]).expect_err("cut").status, 502);
    // A null reason is still an end.
    let none = json!({"type": "message_delta", "delta": {"stop_reason": null}});
    let response = fold(&[start(), none, stop]).expect("a stream");
    assert_eq!(response.choices[0].finish, Finish::Other);
    let mut other = start();
    other["message"]["id"] = json!("msg_2");
    assert_eq!(fold(&[start(), other]).expect_err("spliced").status, 502);
    let error = json!({"type": "error", "error": {"type": "api_error", "message": "Oops."}});
    assert_eq!(fold(&[start(), error]).expect_err("failed").status, 500);
}

#[test]
fn refusals_keep_their_explanation() {
    let refusal = json!({"type": "message_delta", "delta": {"stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": null, "explanation": "No."}}});
    let response = fold(&[start(), refusal, json!({"type": "message_stop"})]).expect("a stream");
    assert_eq!(
        response.choices[0].finish,
        Finish::Filtered(Some("No.".into()))
    );
}

#[test]
fn an_encoded_stream_is_decoded_to_the_same_response() {
    let call = PartKind::Call(super::call(Some("a"), "{\"city\":\"Bern\"}"));
    let reasoning = PartKind::Reasoning {
        text: "Hm.".into(),
        signature: Some(Signature {
            issuer: Issuer::Thinking,
            data: "sig".into(),
        }),
    };
    let mut response = super::response(vec![reasoning, super::text("Hi."), call], Finish::Tools);
    let mut encoder = super::super::Messages.stream_encoder(&super::options());
    let mut encoded = SseWriter::default();
    response.unfold(&mut |event| encoder.encode_event(event, &mut encoded));
    let mut events = Vec::new();
    SseFrames::default().push(&encoded.take(), |frame| {
        events.extend(
            frame
                .data
                .map(|data| serde_json::from_str(&data).expect("JSON")),
        );
    });
    response.id = "msg_1".into();
    response.model = "asked-for".into();
    response.created = 0;
    assert_eq!(fold(&events).expect("a good stream"), response);
}

#[test]
fn a_stream_without_a_start_is_an_error() {
    let events = [
        open(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "losses"})),
        json!({"type": "message_stop"}),
    ];
    let api_error = fold(&events).expect_err("nothing has begun");
    assert_eq!(api_error.status, 502);
}

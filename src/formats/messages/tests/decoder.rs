//! Streams of an upstream, read into the model.

use serde_json::{Value, json};

use crate::formats::Codec as _;
use crate::model::{ApiError, Event, Finish, Fold, Issuer, PartKind, Response, Signature, Usage};
use crate::sse::{SseFrames, SseWriter};

/// The reply that the events make up, or what was wrong with them.
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
        decoder.event(&event.to_string(), &mut out)?;
    }
    decoder.close(&mut out)?;
    Ok(fold.finish())
}

fn begin() -> Value {
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
fn hosted_tools_signs_of_life_and_news_are_passed_over() {
    let mut events = vec![
        begin(),
        json!({"type": "ping"}),
        begin(),
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
    let reply = fold(&events).expect("a good stream");
    let choice = &reply.choices[0];
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
    assert_eq!(reply.usage, Some(usage));
}

#[test]
fn blocks_that_overlap_come_out_one_after_the_other() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let arguments = |index, json: &str| {
        delta(
            index,
            json!({"type": "input_json_delta", "partial_json": json}),
        )
    };
    let mut events = vec![begin(), open(0, call("a")), open(1, call("b"))];
    events.extend([
        arguments(1, "{\"b\":1}"),
        arguments(0, "{\"a\":1}"),
        stop(1),
        stop(0),
    ]);
    events.extend(end());
    let reply = fold(&events).expect("a good stream");
    let calls = reply.choices[0].parts.iter().map(|part| match &part.kind {
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
fn arguments_may_come_with_the_start() {
    let block = json!({"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}});
    let mut events = vec![begin(), open(0, block), stop(0)];
    events.extend(end());
    let reply = fold(&events).expect("a good stream");
    let PartKind::Call(call) = &reply.choices[0].parts[0].kind else {
        panic!("a call");
    };
    assert_eq!(call.arguments.to_text(), "{\"x\":1}");
}

#[test]
fn a_stream_must_reach_its_end_and_be_one_reply() {
    assert_eq!(fold(&[begin()]).expect_err("cut").status, 502);
    let [finish, stop] = end();
    assert_eq!(fold(&[begin(), finish]).expect_err("cut").status, 502);
    assert_eq!(fold(&[begin(), stop.clone()]).expect_err("cut").status, 502);
    // A reason that is told as none is still an end.
    let none = json!({"type": "message_delta", "delta": {"stop_reason": null}});
    let reply = fold(&[begin(), none, stop]).expect("a stream");
    assert_eq!(reply.choices[0].finish, Finish::Other);
    let mut other = begin();
    other["message"]["id"] = json!("msg_2");
    assert_eq!(fold(&[begin(), other]).expect_err("spliced").status, 502);
    let error = json!({"type": "error", "error": {"type": "api_error", "message": "Oops."}});
    assert_eq!(fold(&[begin(), error]).expect_err("failed").status, 500);
}

#[test]
fn refusals_keep_their_explanation() {
    let refusal = json!({"type": "message_delta", "delta": {"stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": null, "explanation": "No."}}});
    let reply = fold(&[begin(), refusal, json!({"type": "message_stop"})]).expect("a stream");
    assert_eq!(
        reply.choices[0].finish,
        Finish::Filtered(Some("No.".into()))
    );
}

#[test]
fn what_the_format_writes_it_can_read() {
    let call = PartKind::Call(super::call(Some("a"), "{\"city\":\"Bern\"}"));
    let thought = PartKind::Reasoning {
        text: "Hm.".into(),
        signature: Some(Signature {
            issuer: Issuer::Thinking,
            data: "sig".into(),
        }),
    };
    let mut reply = super::response(vec![thought, super::text("Hi."), call], Finish::Tools);
    let mut encoder = super::super::Messages.stream_encoder(&super::asked());
    let mut written = SseWriter::default();
    reply.unfold(&mut |event| encoder.event(event, &mut written));
    let mut events = Vec::new();
    SseFrames::default().push(&written.take(), |frame| {
        events.extend(
            frame
                .data
                .map(|data| serde_json::from_str(&data).expect("JSON")),
        );
    });
    reply.id = "msg_1".into();
    reply.model = "asked-for".into();
    reply.created = 0;
    assert_eq!(fold(&events).expect("a good stream"), reply);
}

#[test]
fn an_end_without_a_beginning_is_no_answer() {
    let events = [
        open(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "lost"})),
        json!({"type": "message_stop"}),
    ];
    let api_error = fold(&events).expect_err("nothing has begun");
    assert_eq!(api_error.status, 502);
}

//! Streams of chat upstreams and of those who imitate them.

use serde_json::{Value, json};

use super::super::decoder::Decoder;
use super::super::{incoming, response as whole, stream};
use super::{asked, choice, response, signature};
use crate::formats::{StreamDecoder, StreamEncoder};
use crate::model::{
    ApiError, ApiErrorKind, Arguments, Block, Call, Citation, Delta, Event, Finish, Fold, Issuer,
    Logprob, Losses, PartKind, Response, ToolKind, Usage,
};
use crate::sse::{SseFrames, SseWriter};

/// Every event as text, and the reply they make up.
fn decoded(events: &[Value]) -> Result<(Vec<String>, Response<'static>), ApiError> {
    let (mut decoder, mut fold, mut seen) = (Decoder::default(), Fold::default(), Vec::new());
    let mut out = |event: Event<'_>| {
        seen.push(word(&event));
        fold.push(event);
    };
    for event in events {
        let data = event
            .as_str()
            .map_or_else(|| event.to_string(), str::to_owned);
        decoder.event(&data, &mut out)?;
    }
    decoder.close(&mut out)?;
    Ok((seen, fold.finish()))
}

fn word(event: &Event<'_>) -> String {
    match event {
        Event::Start { id, .. } => format!("start {id}"),
        Event::Open { block, .. } => match block {
            Block::Call { name, .. } => format!("open {name}"),
            Block::Media(_) => "open media".to_owned(),
            other => format!("open {other:?}"),
        },
        Event::Delta { delta, .. } => match delta {
            Delta::Text(text) | Delta::Arguments(text) => text.to_string(),
            Delta::Signature(_) => "signature".to_owned(),
            Delta::Citation(_) => "citation".to_owned(),
            Delta::Logprob(_) => "logprob".to_owned(),
        },
        Event::Close { .. } => "close".to_owned(),
        Event::Finish { reason, .. } => format!("{reason:?}"),
        Event::Usage(usage) => format!("usage {}", usage.output),
        Event::End => "end".to_owned(),
    }
}

fn piece(delta: Value, finish: Value) -> Value {
    json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn calls(calls: Value) -> Value {
    piece(json!({"tool_calls": calls}), Value::Null)
}

fn done() -> Value {
    json!("[DONE]")
}

#[test]
fn blocks_open_and_close_as_the_kind_changes() {
    let (seen, _) = decoded(&[
        json!({"id": "", "model": "", "choices": [], "prompt_filter_results": []}),
        piece(json!({"role": "assistant", "content": ""}), Value::Null),
        piece(json!({"reasoning": "T"}), Value::Null),
        piece(json!({"content": "A", "annotations": []}), Value::Null),
        piece(json!({"content": "B"}), json!("")),
        piece(json!({"refusal": "No"}), json!("stop")),
        json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
        done(),
        piece(json!({"content": "too late"}), Value::Null),
    ])
    .expect("a stream");
    assert_eq!(
        seen,
        [
            "start c",
            "open Reasoning",
            "T",
            "close",
            "open Text",
            "A",
            "B",
            "close",
            "open Refusal",
            "No",
            "close",
            "Refused",
            "usage 2",
            "end"
        ]
    );
}

#[test]
fn complete_calls_make_room_for_the_next() {
    let (seen, _) = decoded(&[
        calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}])),
        calls(json!([{"index": 0, "function": {"arguments": "{\"x\":"}}])),
        calls(json!([{"index": 0, "function": {"arguments": "\"}\"}"}}])),
        calls(json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}])),
        piece(json!({"content": "meanwhile"}), Value::Null),
        calls(json!([{"index": 2, "id": "c", "function": {"name": "h", "arguments": "{}"}}])),
        calls(json!([{"index": 1, "function": {"arguments": "}"}}])),
        piece(json!({}), json!("tool_calls")),
    ])
    .expect("a stream");
    assert_eq!(
        seen,
        [
            "start c",
            "open f",
            "{\"x\":",
            "\"}\"}",
            "close",
            "open g",
            "{",
            "}",
            "close",
            "open Text",
            "meanwhile",
            "close",
            "open h",
            "{}",
            "close",
            "Tools",
            "end"
        ]
    );
}

#[test]
fn calls_without_an_index_or_all_with_the_same() {
    for index in [Value::Null, json!(0)] {
        let call = |id: &str, arguments: &str| {
            calls(json!([{"index": index, "id": id,
                "function": {"name": "f", "arguments": arguments}}]))
        };
        let events = [
            call("a", "{}"),
            call("b", "{\"x\":"),
            call("b", "1}"),
            done(),
        ];
        let (_, reply) = decoded(&events).expect("a stream");
        let arguments: Vec<_> = reply.choices[0]
            .parts
            .iter()
            .map(|part| match &part.kind {
                PartKind::Call(call) => call.arguments.to_text(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(arguments, ["{}", "{\"x\":1}"]);
        assert_eq!(reply.choices[0].finish, Finish::Tools);
    }
}

#[test]
fn usage_wherever_a_backend_puts_it() {
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 7});
    let mut on_finish = piece(json!({"content": "A"}), json!("stop"));
    on_finish["usage"] = usage.clone();
    let mut beside = piece(json!({"content": "A"}), json!("stop"));
    beside["x_groq"] = json!({"usage": usage});
    for event in [on_finish, beside] {
        let (_, reply) = decoded(&[event, done()]).expect("a stream");
        assert_eq!(reply.usage.map(|usage| usage.output), Some(7));
    }
}

#[test]
fn streams_that_break_off_are_failures() {
    let begun = piece(json!({"content": "A"}), Value::Null);
    let broken = [
        vec![],
        vec![done()],
        vec![json!({"choices": [], "usage": {}}), done()],
        vec![begun.clone()],
        vec![begun.clone(), json!("{")],
        vec![begun.clone(), piece(json!({}), json!("error"))],
    ];
    for events in broken {
        let api_error = decoded(&events).expect_err("an error");
        assert_eq!(api_error.kind, ApiErrorKind::BadGateway, "{events:?}");
    }
    let told = json!({"error": {"message": "m", "code": 503}});
    let api_error = decoded(&[begun.clone(), told]).expect_err("an error");
    assert_eq!(api_error.kind, ApiErrorKind::Overloaded);
    // No reason was given, but the end was.
    let (_, reply) = decoded(&[begun, done()]).expect("a stream");
    assert_eq!(reply.choices[0].finish, Finish::Stop);
}

/// What the format's own two encoders write is read back as the same, whole or in pieces.
#[test]
fn a_reply_survives_its_own_format() {
    let call = |id: &'static str, arguments: &'static str| {
        PartKind::Call(Call {
            id: Some(id.into()),
            name: "f".into(),
            arguments: Arguments::Text(arguments.into()),
            signature: None,
            kind: ToolKind::Function,
        })
    };
    let mut first = choice(
        vec![
            PartKind::Reasoning {
                text: "Hm.".into(),
                signature: Some(signature(Issuer::Responses)),
            },
            PartKind::Text("Café.".into()),
            call("c1", "{\"b\":1}"),
            call("c2", "{}"),
        ],
        Finish::Tools,
    );
    first.citations.push(Citation {
        url: "https://a.example".into(),
        title: Some("A".into()),
        start: 0,
        end: 4,
    });
    first.logprobs.push(Logprob {
        token: "Café".into(),
        logprob: -0.5,
        top: vec![("Café".into(), -0.5)],
    });
    let second = choice(vec![PartKind::Refusal("No.".into())], Finish::Refused);
    let mut reply = response(vec![first, second]);
    reply.usage = Some(Usage {
        input: 10,
        cached: 3,
        cache_written: 2,
        output: 9,
        thinking: 4,
        ..Usage::default()
    });

    let body = whole::encode(&reply, &asked(), &mut Losses::default());
    let read = incoming::decode(&body, &mut Losses::default()).expect("a reply");
    assert_eq!((&read.choices, read.usage), (&reply.choices, reply.usage));

    let (mut encoder, mut wire) = (stream::Encoder::new(&asked()), SseWriter::default());
    reply.unfold(&mut |event| encoder.event(event, &mut wire));
    let (mut decoder, mut fold) = (Decoder::default(), Fold::default());
    SseFrames::default().push(&wire.take(), |frame| {
        let data = frame.data.expect("data");
        let read = decoder.event(&data, &mut |event| fold.push(event));
        read.unwrap_or_else(|api_error| panic!("{data}: {api_error:?}"));
    });
    decoder
        .close(&mut |event| fold.push(event))
        .expect("an end");
    let read = fold.finish();
    assert_eq!((&read.choices, read.usage), (&reply.choices, reply.usage));
}

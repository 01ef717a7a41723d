//! Streams of chat upstreams and of compatible backends.

use serde_json::{Value, json};

use super::{choice, options, response, signature};
use crate::formats::ResponseCodec as _;
use crate::formats::chat::Chat;
use crate::formats::chat::stream::{ChatStreamDecoder, ChatStreamEncoder};
use crate::formats::{StreamDecoder, StreamEncoder};
use crate::model::{
    ApiError, ApiErrorKind, Arguments, Block, Call, Citation, Delta, Event, Finish, Fold, Issuer,
    Logprob, Losses, PartKind, Response, ToolKind, Usage,
};
use crate::sse::{SseFrames, SseWriter};

/// Every event by name, and the response that they make up.
fn decode(events: &[Value]) -> Result<(Vec<String>, Response<'static>), ApiError> {
    let (mut decoder, mut fold, mut seen) =
        (ChatStreamDecoder::default(), Fold::default(), Vec::new());
    let mut out = |event: Event<'_>| {
        seen.push(event_name(&event));
        fold.push(event);
    };
    for event in events {
        let data = event
            .as_str()
            .map_or_else(|| event.to_string(), str::to_owned);
        decoder.decode_event(&data, &mut out)?;
    }
    decoder.finish(&mut out)?;
    Ok((seen, fold.finish()))
}

fn event_name(event: &Event<'_>) -> String {
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

fn chunk(delta: Value, finish: Value) -> Value {
    json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn calls(calls: Value) -> Value {
    chunk(json!({"tool_calls": calls}), Value::Null)
}

fn done() -> Value {
    json!("[DONE]")
}

#[test]
fn blocks_open_and_close_as_the_kind_changes() {
    let (seen, _) = decode(&[
        json!({"id": "", "model": "", "choices": [], "prompt_filter_results": []}),
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({"reasoning": "T"}), Value::Null),
        chunk(json!({"content": "A", "annotations": []}), Value::Null),
        chunk(json!({"content": "B"}), json!("")),
        chunk(json!({"refusal": "No"}), json!("stop")),
        json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
        done(),
        chunk(json!({"content": "too late"}), Value::Null),
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
fn a_complete_call_is_closed_before_the_next_block() {
    let (seen, _) = decode(&[
        calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}])),
        calls(json!([{"index": 0, "function": {"arguments": "{\"x\":"}}])),
        calls(json!([{"index": 0, "function": {"arguments": "\"}\"}"}}])),
        calls(json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}])),
        chunk(json!({"content": "meanwhile"}), Value::Null),
        calls(json!([{"index": 2, "id": "c", "function": {"name": "h", "arguments": "{}"}}])),
        calls(json!([{"index": 1, "function": {"arguments": "}"}}])),
        chunk(json!({}), json!("tool_calls")),
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
fn calls_without_an_index_are_told_apart_by_id() {
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
        let (_, completion) = decode(&events).expect("a stream");
        let arguments: Vec<_> = completion.choices[0]
            .parts
            .iter()
            .map(|part| match &part.kind {
                PartKind::Call(call) => call.arguments.to_text(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(arguments, ["{}", "{\"x\":1}"]);
        assert_eq!(completion.choices[0].finish, Finish::Tools);
    }
}

#[test]
fn usage_is_decoded_from_every_field() {
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 7});
    let mut on_finish = chunk(json!({"content": "A"}), json!("stop"));
    on_finish["usage"] = usage.clone();
    let mut beside = chunk(json!({"content": "A"}), json!("stop"));
    beside["x_groq"] = json!({"usage": usage});
    for event in [on_finish, beside] {
        let (_, completion) = decode(&[event, done()]).expect("a stream");
        assert_eq!(completion.usage.map(|usage| usage.output), Some(7));
    }
}

#[test]
fn a_truncated_stream_is_an_error() {
    let begun = chunk(json!({"content": "A"}), Value::Null);
    let broken = [
        vec![],
        vec![done()],
        vec![json!({"choices": [], "usage": {}}), done()],
        vec![begun.clone()],
        vec![begun.clone(), json!("{")],
        vec![begun.clone(), chunk(json!({}), json!("error"))],
    ];
    for events in broken {
        let api_error = decode(&events).expect_err("an error");
        assert_eq!(api_error.kind, ApiErrorKind::BadGateway, "{events:?}");
    }
    let error = json!({"error": {"message": "m", "code": 503}});
    let api_error = decode(&[begun.clone(), error]).expect_err("an error");
    assert_eq!(api_error.kind, ApiErrorKind::Overloaded);
    // Without a finish reason the end of the stream decides.
    let (_, completion) = decode(&[begun, done()]).expect("a stream");
    assert_eq!(completion.choices[0].finish, Finish::Stop);
}

/// What the encoders of the format produce is decoded to the same response, as JSON and as a stream.
#[test]
fn a_response_round_trips_through_its_own_format() {
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
    let mut completion = response(vec![first, second]);
    completion.usage = Some(Usage {
        input: 10,
        cached: 3,
        cache_written: 2,
        output: 9,
        thinking: 4,
        ..Usage::default()
    });

    let body = Chat.encode_response(&completion, &options(), &mut Losses::default());
    let result = Chat
        .decode_response(&body, &mut Losses::default())
        .expect("a completion");
    assert_eq!(
        (&result.choices, result.usage),
        (&completion.choices, completion.usage)
    );

    let (mut encoder, mut out) = (ChatStreamEncoder::new(&options()), SseWriter::default());
    completion.unfold(&mut |event| encoder.encode_event(event, &mut out));
    let (mut decoder, mut fold) = (ChatStreamDecoder::default(), Fold::default());
    SseFrames::default().push(&out.take(), |frame| {
        let data = frame.data.expect("data");
        let result = decoder.decode_event(&data, &mut |event| fold.push(event));
        result.unwrap_or_else(|api_error| panic!("{data}: {api_error:?}"));
    });
    decoder
        .finish(&mut |event| fold.push(event))
        .expect("an end");
    let result = fold.finish();
    assert_eq!(
        (&result.choices, result.usage),
        (&completion.choices, completion.usage)
    );
}

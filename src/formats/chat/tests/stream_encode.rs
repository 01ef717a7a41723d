//! Encoded streams.

use serde_json::{Value, json};

use super::{call, choice, full_response, options, response, signature, text};
use crate::formats::ResponseCodec as _;
use crate::formats::chat::Chat;
use crate::formats::chat::stream::ChatStreamEncoder;
use crate::formats::{ResponseOptions, StreamEncoder as _};
use crate::model::{
    ApiError, ApiErrorKind, Block, Delta, Event, Finish, Issuer, Losses, Response, ToolKind, Usage,
};
use crate::sse::{SseFrames, SseWriter};

fn payloads(out: &mut SseWriter) -> Vec<Value> {
    let mut seen = Vec::new();
    SseFrames::default().push(&out.take(), |frame| {
        assert_eq!(frame.name, "");
        let data = frame.data.expect("data only");
        seen.push(match &*data {
            "[DONE]" => json!("[DONE]"),
            data => serde_json::from_str(data).expect("JSON"),
        });
    });
    seen
}

fn encode(events: Vec<Event<'_>>, options: &ResponseOptions) -> Vec<Value> {
    let (mut encoder, mut out) = (ChatStreamEncoder::new(options), SseWriter::default());
    for event in events {
        encoder.encode_event(event, &mut out);
    }
    payloads(&mut out)
}

fn start() -> Event<'static> {
    Event::Start {
        id: "msg_1".into(),
        model: "upstream".into(),
        created: 7,
    }
}

fn open(block: Block<'static>) -> Event<'static> {
    Event::Open { choice: 0, block }
}

fn delta(delta: Delta<'static>) -> Event<'static> {
    Event::Delta { choice: 0, delta }
}

fn text_delta(text: &'static str) -> Event<'static> {
    delta(Delta::Text(text.into()))
}

const CLOSE: Event<'static> = Event::Close { choice: 0 };

const STOP: Event<'static> = Event::Finish {
    choice: 0,
    reason: Finish::Stop,
};

/// The deltas of the only choice.
fn deltas(payloads: &[Value]) -> Vec<Value> {
    let choices = payloads
        .iter()
        .filter_map(|payload| payload["choices"].get(0));
    choices.map(|choice| choice["delta"].clone()).collect()
}

#[test]
fn a_text_is_one_chunk_per_delta() {
    let events = vec![
        start(),
        Event::Usage(Usage {
            input: 1,
            ..Usage::default()
        }),
        open(Block::Text),
        text_delta("Hel"),
        text_delta(""),
        text_delta("lo."),
        CLOSE,
        STOP,
        Event::Usage(Usage {
            input: 10,
            output: 3,
            ..Usage::default()
        }),
        Event::End,
    ];
    let seen = encode(events.clone(), &options());
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "options",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let usage = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "options",
        "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0}}});
    let expected = [
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({"content": "Hel"}), Value::Null),
        chunk(json!({"content": "lo."}), Value::Null),
        chunk(json!({}), json!("stop")),
        usage,
        json!("[DONE]"),
    ];
    assert_eq!(seen, expected);
    let mut without_usage = options();
    without_usage.include_usage = false;
    let seen = encode(events, &without_usage);
    assert_eq!(seen, [&expected[..4], &expected[5..]].concat());
}

#[test]
fn calls_begin_with_their_name_and_always_have_arguments() {
    let named = |id: Option<&'static str>, kind| Block::Call {
        id: id.map(Into::into),
        name: "look".into(),
        kind,
    };
    let seen = encode(
        vec![
            start(),
            open(named(Some("call_1"), ToolKind::Function)),
            delta(Delta::Arguments("{\"x\":".into())),
            delta(Delta::Arguments("1}".into())),
            CLOSE,
            open(named(Some("call_2"), ToolKind::Function)),
            delta(Delta::Signature(signature(Issuer::Native))),
            CLOSE,
            open(named(Some("call_3"), ToolKind::Custom)),
            delta(Delta::Arguments("hey".into())),
            CLOSE,
            STOP,
            Event::End,
        ],
        &options(),
    );
    let function = |index: usize, arguments: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]});
    let first = |index: usize, id: &str| json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": "look", "arguments": ""}}]});
    assert_eq!(
        deltas(&seen)[1..],
        [
            first(0, "call_1"),
            function(0, "{\"x\":"),
            function(0, "1}"),
            first(1, "call_2"),
            function(1, "{}"),
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": signature(Issuer::Native).wrap(),
                "id": "call_2", "format": "omniglot-v1", "index": 0}]}),
            json!({"tool_calls": [{"index": 2, "id": "call_3", "type": "custom", "custom": {"name": "look", "input": ""}}]}),
            json!({"tool_calls": [{"index": 2, "custom": {"input": "hey"}}]}),
            json!({}),
        ]
    );
    assert_eq!(
        seen[seen.len() - 2]["choices"][0]["finish_reason"],
        "tool_calls"
    );
}

#[test]
fn a_signature_follows_its_reasoning() {
    let seen = encode(
        vec![
            start(),
            open(Block::Reasoning),
            text_delta("Think"),
            text_delta("ing."),
            delta(Delta::Signature(signature(Issuer::Thinking))),
            CLOSE,
            open(Block::Text),
            text_delta("42"),
            CLOSE,
            open(Block::Reasoning),
            delta(Delta::Signature(signature(Issuer::Native))),
            CLOSE,
            STOP,
            Event::End,
        ],
        &options(),
    );
    let details = |detail: Value| json!({"reasoning_details": [detail]});
    assert_eq!(
        deltas(&seen)[1..],
        [
            json!({"reasoning_content": "Think"}),
            json!({"reasoning_content": "ing."}),
            details(json!({"type": "reasoning.text", "text": "Thinking.",
                "signature": signature(Issuer::Thinking).wrap(), "format": "omniglot-v1", "index": 0})),
            json!({"content": "42"}),
            details(
                json!({"type": "reasoning.encrypted", "data": signature(Issuer::Native).wrap(),
                "id": null, "format": "omniglot-v1", "index": 1})
            ),
            json!({}),
        ]
    );
}

/// Puts chunks together the way clients do.
fn gather(payloads: &[Value]) -> Value {
    let mut choices: Vec<Value> = Vec::new();
    for chunk in payloads
        .iter()
        .filter_map(|payload| payload["choices"].get(0))
    {
        let at = usize::try_from(chunk["index"].as_u64().expect("an index")).expect("small");
        if choices.len() <= at {
            choices.resize(at + 1, json!({"message": {}, "logprobs": null}));
        }
        let choice = &mut choices[at];
        merge(&mut choice["message"], &chunk["delta"]);
        if let Some(logprobs) = chunk.get("logprobs") {
            merge(&mut choice["logprobs"], logprobs);
        }
        if !chunk["finish_reason"].is_null() {
            assert_eq!(choice.get("finish_reason"), None, "only one finish");
            choice["finish_reason"] = chunk["finish_reason"].clone();
        } else {
            assert_eq!(
                choice.get("finish_reason"),
                None,
                "nothing after the finish"
            );
        }
    }
    Value::Array(choices)
}

fn merge(complete: &mut Value, chunk: &Value) {
    match (complete, chunk) {
        (Value::String(complete), Value::String(chunk)) => complete.push_str(chunk),
        (Value::Object(complete), Value::Object(chunk)) => {
            for (key, value) in chunk {
                match complete.get_mut(key) {
                    Some(complete) => merge(complete, value),
                    None => drop(complete.insert(key.clone(), value.clone())),
                }
            }
        }
        (Value::Array(complete), Value::Array(chunk)) => {
            for value in chunk {
                let same = |one: &&mut Value| {
                    one.get("function").or(one.get("custom")).is_some()
                        && one["index"] == value["index"]
                };
                match complete.iter_mut().find(same) {
                    Some(complete) => merge(complete, value),
                    None => complete.push(value.clone()),
                }
            }
        }
        (complete, chunk) => {
            if complete.is_null() || chunk.is_number() {
                *complete = chunk.clone();
            }
        }
    }
}

/// The content of the choices, without the fields that only a stream or only a JSON response has.
fn essence(mut choices: Value) -> Value {
    for choice in choices.as_array_mut().expect("choices") {
        choice.as_object_mut().expect("a choice").remove("index");
        let message = choice["message"].as_object_mut().expect("a message");
        message.retain(|_, value| !value.is_null() && *value != "");
        for key in ["tool_calls", "images"] {
            let list = message.get_mut(key).and_then(Value::as_array_mut);
            for entry in list.into_iter().flatten() {
                entry.as_object_mut().expect("an object").remove("index");
            }
        }
    }
    choices
}

fn unfolded(response: &Response<'_>) -> Vec<Value> {
    let (mut encoder, mut out) = (ChatStreamEncoder::new(&options()), SseWriter::default());
    response.unfold(&mut |event| encoder.encode_event(event, &mut out));
    payloads(&mut out)
}

#[test]
fn a_stream_holds_the_same_as_the_json_response() {
    let short = response(vec![choice(vec![text("a"), call(None, " ")], Finish::Stop)]);
    let cut = response(vec![choice(vec![call(Some("c"), "{\"x")], Finish::Length)]);
    for response in [full_response(), short, cut, response(vec![])] {
        let complete: Value = serde_json::from_slice(&Chat.encode_response(
            &response,
            &options(),
            &mut Losses::default(),
        ))
        .expect("JSON");
        let mut seen = unfolded(&response);
        assert_eq!(seen.pop(), Some(json!("[DONE]")));
        assert_eq!(seen.pop().expect("usage")["usage"], complete["usage"]);
        for chunk in &seen {
            assert_eq!(
                [&chunk["id"], &chunk["model"]],
                [&complete["id"], &complete["model"]]
            );
            assert_eq!(chunk["created"], complete["created"]);
        }
        assert_eq!(essence(gather(&seen)), essence(complete["choices"].clone()));
    }
}

#[test]
fn the_finish_reason_is_delayed_to_the_end() {
    let seen = encode(
        vec![
            start(),
            STOP,
            open(Block::Text),
            text_delta("late"),
            CLOSE,
            Event::End,
        ],
        &options(),
    );
    gather(&seen[..seen.len() - 1]);
    assert_eq!(deltas(&seen)[1..], [json!({"content": "late"}), json!({})]);
}

#[test]
fn an_error_ends_the_stream_at_any_event() {
    let response = full_response();
    let mut length = 0;
    response.unfold(&mut |_| length += 1);
    for stop in 0..=length {
        let (mut encoder, mut out) = (ChatStreamEncoder::new(&options()), SseWriter::default());
        let api_error = ApiError::new(ApiErrorKind::Overloaded, "Overloaded.");
        let mut at = 0;
        response.unfold(&mut |event| {
            if at == stop {
                encoder.encode_error(&api_error, &mut out);
                encoder.encode_error(&api_error, &mut out);
            }
            encoder.encode_event(event, &mut out);
            at += 1;
        });
        encoder.encode_error(&api_error, &mut out);
        let seen = payloads(&mut out);
        let (last, before) = seen.split_last().expect("something");
        let error = json!({"error": {"message": "Overloaded.", "type": "server_error", "param": null, "code": "overloaded"}});
        if stop < length {
            assert_eq!(*last, error, "api_error before event {stop}");
            assert!(
                before
                    .iter()
                    .all(|payload| payload.is_object() && payload.get("error").is_none())
            );
        } else {
            assert_eq!(*last, json!("[DONE]"), "a finished stream has no api_error");
        }
    }
}

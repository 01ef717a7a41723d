//! Laws of every stream: it holds what the JSON response holds, and an error may end it anywhere.

use serde_json::{Value, json};

use super::{call, choice, full_response, options, response, signature, text};
use crate::formats::chat::Chat;
use crate::formats::chat::stream::{ChatStreamDecoder, ChatStreamEncoder};
use crate::formats::{ResponseCodec as _, StreamDecoder as _, StreamEncoder as _};
use crate::model::{
    ApiError, ApiErrorKind, Arguments, Call, Citation, Finish, Fold, Issuer, Logprob, Losses,
    PartKind, Response, ToolKind, Usage,
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

//! Signatures of calls, text and reasoning, in requests, responses and streams.

use omniglot::model::Format;

use crate::measure::{check, excess, list};
use crate::requests::{body, call, calls_turn, forward, question};
use crate::responses::{self, options};
use crate::streams;

const COUNT: usize = 4000;

/// A signature that this gateway has wrapped.
const WRAPPED: &str = "b21uaWdsb3QvMSBuCnNpZw==";

/// The `reasoning_details` that sign as many calls.
fn call_signatures(count: usize) -> String {
    list(count, |number| {
        format!(r#"{{"type":"reasoning.encrypted","data":"{WRAPPED}","id":"call_{number}"}}"#)
    })
}

/// A message of the model with that many calls, each with a signature.
fn signed_calls(count: usize) -> String {
    let calls = list(count, |number| call(Format::Chat, number, "t"));
    let details = call_signatures(count);
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{calls}],"reasoning_details":[{details}]}}"#
    )
}

fn chat_request(count: usize) -> Vec<u8> {
    let turns = format!("{},{}", question(Format::Chat), signed_calls(count));
    body(Format::Chat, &turns, "", "")
}

fn chat_response(count: usize) -> Vec<u8> {
    let message = signed_calls(count);
    format!(
        r#"{{"id":"c","object":"chat.completion","created":1,"model":"u","choices":[{{"index":0,"message":{message},"finish_reason":"tool_calls"}}]}}"#
    )
    .into_bytes()
}

/// A part of the native format, signed in every way in turn.
fn native_part(number: usize) -> String {
    match number % 4 {
        0 => r#"{"text":"a","thoughtSignature":"c2ln"}"#.to_owned(),
        1 => format!(
            r#"{{"functionCall":{{"name":"t{number}","args":{{}}}},"thoughtSignature":"c2ln"}}"#
        ),
        2 => r#"{"text":"","thoughtSignature":"c2ln"}"#.to_owned(),
        _ => r#"{"text":"x","thought":true,"thoughtSignature":"c2ln"}"#.to_owned(),
    }
}

fn native_request(count: usize) -> Vec<u8> {
    let ask = question(Format::Native);
    let model = calls_turn(Format::Native, &list(count, native_part));
    body(Format::Native, &format!("{ask},{model},{ask}"), "", "")
}

fn native_response(count: usize) -> Vec<u8> {
    let parts = list(count, native_part);
    format!(
        r#"{{"candidates":[{{"index":0,"content":{{"role":"model","parts":[{parts}]}},"finishReason":"STOP"}}]}}"#
    )
    .into_bytes()
}

fn native_stream(count: usize) -> Vec<u8> {
    let chunk = |part: &str, finish: &str| {
        format!(
            "data: {{\"candidates\":[{{\"index\":0,\"content\":{{\"role\":\"model\",\"parts\":[{part}]}}{finish}}}]}}\n\n"
        )
    };
    let chunks = (0..count).map(|number| chunk(&native_part(number), ""));
    let last = chunk(r#"{"text":"."}"#, r#","finishReason":"STOP""#);
    (chunks.collect::<String>() + &last).into_bytes()
}

#[test]
fn the_work_for_signed_parts_grows_with_their_number() {
    let (chat, native) = (Format::Chat, Format::Native);
    let options = options(false, 0);
    let mut found = Vec::new();
    for other in Format::ALL {
        let translate = |from| {
            let options = &options;
            move |body: &[u8]| responses::translate(from, other, body, options)
        };
        let grown = [
            (
                "calls of a request",
                excess(COUNT, chat_request, |body| forward(chat, other, body)),
            ),
            (
                "parts of a request",
                excess(COUNT, native_request, |body| forward(native, other, body)),
            ),
            (
                "calls of a response",
                excess(COUNT, chat_response, translate(chat)),
            ),
            (
                "parts of a response",
                excess(COUNT, native_response, translate(native)),
            ),
            (
                "parts of a stream",
                excess(COUNT, native_stream, |wire| {
                    streams::translate(native, other, wire)
                }),
            ),
        ];
        for (shape, growth) in grown {
            found.extend(growth.map(|growth| format!("{shape}, {}: {growth}", other.name())));
        }
    }
    check(found);
}

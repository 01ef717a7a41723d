//! Streams of every shape, translated to every format and passed through, an event at a time.

use bytes::Bytes;
use omniglot::formats::{Framing, Operation};
use omniglot::model::Format;
use omniglot::translate::{RequestSummary, ResponseTranslator};

use crate::measure::{check, excess, pairs};
use crate::responses::{MODEL, options};

const COUNT: usize = 500;

/// What there may be many of in a stream.
const SHAPES: [&str; 8] = [
    "texts",
    "calls",
    "interleaved calls",
    "reasoning",
    "unknown events",
    "citations",
    "lines of one event",
    "ends",
];

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn chat(shape: &str, count: usize) -> String {
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"u\",\"choices\":[{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let call = |number: usize| {
        format!(
            r#""tool_calls":[{{"index":{number},"id":"call_{number}","type":"function","function":{{"name":"t{number}","arguments":""}}}}]"#
        )
    };
    let arguments = |number: usize| {
        format!(r#""tool_calls":[{{"index":{number},"function":{{"arguments":"{{}}"}}}}]"#)
    };
    let mut wire = chunk(r#""role":"assistant""#, "null");
    for number in 0..count {
        match shape {
            "texts" => wire += &chunk(r#""content":"A""#, "null"),
            "calls" => {
                wire += &chunk(&call(number), "null");
                wire += &chunk(&arguments(number), "null");
            }
            "interleaved calls" => wire += &chunk(&call(number), "null"),
            "reasoning" => {
                wire += &chunk(
                    &format!(
                        r#""reasoning_details":[{{"type":"reasoning.text","text":"t","signature":"c2ln","index":{number}}}]"#
                    ),
                    "null",
                )
            }
            "citations" => {
                wire += &chunk(
                    &format!(
                        r#""content":"A","annotations":[{{"type":"url_citation","url_citation":{{"start_index":{number},"end_index":{},"url":"https://a.example/{number}","title":"T"}}}}]"#,
                        number + 1
                    ),
                    "null",
                )
            }
            _ => wire += &chunk(&format!(r#""unknown{number}":1"#), "null"),
        }
    }
    if shape == "interleaved calls" {
        for number in 0..count {
            wire += &chunk(&arguments(number), "null");
        }
    }
    let finish = if shape.contains("calls") {
        r#""tool_calls""#
    } else {
        r#""stop""#
    };
    wire + &chunk("", finish) + "data: [DONE]\n\n"
}

fn messages(shape: &str, count: usize) -> String {
    let mut wire = event(
        "message_start",
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"u","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}"#,
    );
    let start = |number: usize| {
        let block = match shape {
            "texts" | "citations" => r#"{"type":"text","text":""}"#.to_owned(),
            "reasoning" => r#"{"type":"thinking","thinking":"","signature":""}"#.to_owned(),
            "unknown events" => format!(r#"{{"type":"unknown{number}"}}"#),
            _ => format!(
                r#"{{"type":"tool_use","id":"toolu_{number}","name":"t{number}","input":{{}}}}"#
            ),
        };
        event(
            "content_block_start",
            &format!(
                r#"{{"type":"content_block_start","index":{number},"content_block":{block}}}"#
            ),
        )
    };
    let delta = |number: usize| {
        let citation = format!(
            r#"{{"type":"citations_delta","citation":{{"type":"web_search_result_location","url":"https://a.example/{number}","title":"T","encrypted_index":"i","cited_text":"A"}}}}"#
        );
        let delta = match shape {
            "citations" => citation.as_str(),
            "texts" => r#"{"type":"text_delta","text":"A"}"#,
            "reasoning" => r#"{"type":"thinking_delta","thinking":"t"}"#,
            "unknown events" => r#"{"type":"unknown_delta"}"#,
            _ => r#"{"type":"input_json_delta","partial_json":"{}"}"#,
        };
        event(
            "content_block_delta",
            &format!(r#"{{"type":"content_block_delta","index":{number},"delta":{delta}}}"#),
        )
    };
    let stop = |number: usize| {
        event(
            "content_block_stop",
            &format!(r#"{{"type":"content_block_stop","index":{number}}}"#),
        )
    };
    if shape == "interleaved calls" {
        wire.extend((0..count).map(start));
        wire.extend((0..count).map(delta));
        wire.extend((0..count).map(stop));
    } else {
        for number in 0..count {
            wire += &(start(number) + &delta(number) + &stop(number));
        }
    }
    let reason = if shape.contains("calls") {
        "tool_use"
    } else {
        "end_turn"
    };
    wire += &event(
        "message_delta",
        &format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":1}}}}"#
        ),
    );
    wire + &event("message_stop", r#"{"type":"message_stop"}"#)
}

fn grounding(shape: &str, number: usize) -> String {
    if shape != "citations" {
        return String::new();
    }
    format!(
        r#","groundingMetadata":{{"groundingChunks":[{{"web":{{"uri":"https://a.example/{number}","title":"T"}}}}],"groundingSupports":[{{"segment":{{"startIndex":{number},"endIndex":{}}},"groundingChunkIndices":[0]}}]}}"#,
        number + 1
    )
}

fn native(shape: &str, count: usize) -> String {
    let mut wire = String::new();
    for number in 0..count {
        let part = match shape {
            "texts" | "citations" => r#"{"text":"A"}"#.to_owned(),
            "reasoning" => r#"{"text":"t","thought":true,"thoughtSignature":"c2ln"}"#.to_owned(),
            "unknown events" => format!(r#"{{"unknown{number}":1}}"#),
            _ => format!(r#"{{"functionCall":{{"name":"t{number}","args":{{}}}}}}"#),
        };
        wire += &format!(
            "data: {{\"candidates\":[{{\"index\":0,\"content\":{{\"role\":\"model\",\"parts\":[{part}]}}{}}}]}}\n\n",
            grounding(shape, number)
        );
    }
    wire + "data: {\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1,\"candidatesTokenCount\":1,\"totalTokenCount\":2}}\n\n"
}

/// The responses format is what the gateway itself makes of a stream of the chat format.
pub fn stream(format: Format, shape: &str, count: usize) -> Vec<u8> {
    if shape == "lines of one event" {
        let wire = String::from_utf8(stream(format, "texts", 1)).expect("text");
        let lines = "\ndata: ".repeat(count * 10);
        return wire.replacen('{', &format!("{{{lines}"), 1).into_bytes();
    }
    if shape == "ends" {
        return ends(format, count);
    }
    let wire = match format {
        Format::Chat => chat(shape, count),
        Format::Messages => messages(shape, count),
        Format::Native => native(shape, count),
        _ => {
            let chat = chat(shape, count);
            return omniglot::translate::stream(
                Format::Chat,
                Format::Responses,
                chat.as_bytes(),
                &options(true, 0),
            );
        }
    };
    wire.into_bytes()
}

/// A stream that says many times that it has ended, the first time with many items where the format lists them.
fn ends(format: Format, count: usize) -> Vec<u8> {
    if format != Format::Responses {
        let wire = String::from_utf8(stream(format, "texts", 1)).expect("text");
        let last = wire.trim_end().rsplit("\n\n").next().unwrap_or_default();
        let last = format!("{last}\n\n");
        return (wire.clone() + &last.repeat(count)).into_bytes();
    }
    let completed = |ids: std::ops::Range<usize>| {
        let items = ids.map(|id| {
            format!(r#"{{"type":"message","id":"m{id}","role":"assistant","content":[]}}"#)
        });
        let items: Vec<String> = items.collect();
        let items = items.join(",");
        event(
            "response.completed",
            &format!(
                r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{items}]}}}}"#
            ),
        )
    };
    let created = event(
        "response.created",
        r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}"#,
    );
    let mut wire = created + &completed(0..count * 4);
    for id in 0..count {
        wire += &completed(id..id + 1);
    }
    wire.into_bytes()
}

pub fn translate(from: Format, to: Format, wire: &[u8]) {
    let operation = Operation::Stream(Framing::Sse);
    let summary = RequestSummary::new(to.codec(), operation, Some(MODEL), b"{}");
    let summary = summary.expect("a request");
    let sse = "text/event-stream";
    let translator = ResponseTranslator::new(to, from, &summary, options(true, 0), sse, usize::MAX);
    let mut translator = translator.expect("a translator");
    let wire = Bytes::copy_from_slice(wire);
    let mut start = 0;
    for (at, _) in wire
        .windows(2)
        .enumerate()
        .filter(|(_, end)| end == b"\n\n")
    {
        let mut chunk = Some(wire.slice(start..at + 2));
        start = at + 2;
        if translator
            .translate_chunk(&mut chunk, start == wire.len())
            .is_err()
        {
            return;
        }
    }
}

#[test]
fn the_work_for_a_stream_grows_with_its_size() {
    let mut found = Vec::new();
    for (to, from) in pairs() {
        for shape in SHAPES {
            let make = |count| stream(from, shape, count);
            if let Some(growth) = excess(COUNT, make, |wire| translate(from, to, wire)) {
                found.push(format!(
                    "{} → {}, {shape}: {growth}",
                    from.name(),
                    to.name()
                ));
            }
        }
    }
    check(found);
}

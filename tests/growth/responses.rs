//! JSON responses of every shape, translated to every format and passed through.

use bytes::Bytes;
use omniglot::formats::{Framing, Operation, ResponseOptions};
use omniglot::model::{Format, TranslationState};
use omniglot::translate::{RequestSummary, ResponseTranslator};

use crate::measure::{check, excess, list, pairs};

pub const MODEL: &str = "m";
const COUNT: usize = 500;

/// What there may be many of in a response.
const SHAPES: [&str; 7] = [
    "texts",
    "calls",
    "calls of renamed tools",
    "reasoning",
    "citations",
    "citations between calls",
    "unknown parts",
];

/// What the translation of a response knows of its request, in which many tools were renamed.
pub fn options(stream: bool, count: usize) -> ResponseOptions {
    let renamed = (0..count).map(|number| (format!("t_{number}"), format!("t {number}")));
    ResponseOptions {
        model: MODEL.to_owned(),
        stream,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_0123456789abcdef".to_owned(),
        created_at: 1_760_000_000,
        translation_state: TranslationState {
            renamed_tools: renamed.collect(),
            ..TranslationState::default()
        },
    }
}

fn chat(shape: &str, count: usize) -> String {
    let fields = match shape {
        "texts" => format!(r#""content":"{}""#, "A ".repeat(count * 10)),
        "calls" | "calls of renamed tools" => {
            let name = if shape == "calls" { "t" } else { "t_" };
            let calls = list(count, |number| {
                format!(
                    r#"{{"id":"call_{number}","type":"function","function":{{"name":"{name}{number}","arguments":"{{}}"}}}}"#
                )
            });
            format!(r#""content":null,"tool_calls":[{calls}]"#)
        }
        "reasoning" => {
            let details = list(count, |number| {
                format!(
                    r#"{{"type":"reasoning.text","text":"t{number}","signature":"c2ln","index":{number}}}"#
                )
            });
            format!(r#""content":"A","reasoning_details":[{details}]"#)
        }
        "citations" | "citations between calls" => {
            let citations = list(count, |number| {
                format!(
                    r#"{{"type":"url_citation","url_citation":{{"start_index":{number},"end_index":{},"url":"https://a.example/{number}","title":"T"}}}}"#,
                    number + 1
                )
            });
            let text = "A".repeat(count + 1);
            format!(r#""content":"{text}","annotations":[{citations}]"#)
        }
        _ => list(count, |number| format!(r#""unknown{number}":1"#)),
    };
    let finish = if shape.starts_with("calls") {
        "tool_calls"
    } else {
        "stop"
    };
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"u","choices":[{{"index":0,"message":{{"role":"assistant",{fields}}},"finish_reason":"{finish}"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
    )
}

fn messages(shape: &str, count: usize) -> String {
    let blocks = list(count, |number| match shape {
        "texts" => format!(r#"{{"type":"text","text":"A{number}"}}"#),
        "calls" => format!(
            r#"{{"type":"tool_use","id":"toolu_{number}","name":"t{number}","input":{{}}}}"#
        ),
        "calls of renamed tools" => {
            format!(
                r#"{{"type":"tool_use","id":"toolu_{number}","name":"t_{number}","input":{{}}}}"#
            )
        }
        "reasoning" => {
            format!(r#"{{"type":"thinking","thinking":"t{number}","signature":"c2ln"}}"#)
        }
        "citations" => format!(
            r#"{{"type":"text","text":"A","citations":[{{"type":"web_search_result_location","url":"https://a.example/{number}","title":"T","encrypted_index":"i","cited_text":"A"}}]}}"#
        ),
        "citations between calls" => format!(
            r#"{{"type":"text","text":"A","citations":[{{"type":"web_search_result_location","url":"https://a.example/{number}","title":"T","encrypted_index":"i","cited_text":"A"}}]}},{{"type":"tool_use","id":"toolu_{number}","name":"t","input":{{}}}}"#
        ),
        _ => format!(r#"{{"type":"unknown{number}"}}"#),
    });
    let stop = if shape.starts_with("calls") {
        "tool_use"
    } else {
        "end_turn"
    };
    format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"u","content":[{blocks}],"stop_reason":"{stop}","stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
    )
}

fn native(shape: &str, count: usize) -> String {
    let parts = list(count, |number| match shape {
        "calls" => format!(r#"{{"functionCall":{{"name":"t{number}","args":{{}}}}}}"#),
        "calls of renamed tools" => {
            format!(r#"{{"functionCall":{{"name":"t_{number}","args":{{}}}}}}"#)
        }
        "reasoning" => {
            format!(r#"{{"text":"t{number}","thought":true,"thoughtSignature":"c2ln"}}"#)
        }
        "unknown parts" => format!(r#"{{"unknown{number}":1}}"#),
        "citations between calls" => {
            r#"{"text":"A"},{"functionCall":{"name":"t","args":{}}}"#.to_owned()
        }
        _ => r#"{"text":"A"}"#.to_owned(),
    });
    let grounding = match shape {
        "citations" | "citations between calls" => {
            let chunks = list(count, |number| {
                format!(r#"{{"web":{{"uri":"https://a.example/{number}","title":"T"}}}}"#)
            });
            let supports = list(count, |number| {
                format!(
                    r#"{{"segment":{{"startIndex":{number},"endIndex":{},"text":"A"}},"groundingChunkIndices":[{number}]}}"#,
                    number + 1
                )
            });
            format!(
                r#","groundingMetadata":{{"groundingChunks":[{chunks}],"groundingSupports":[{supports}]}}"#
            )
        }
        _ => String::new(),
    };
    format!(
        r#"{{"candidates":[{{"index":0,"content":{{"role":"model","parts":[{parts}]}},"finishReason":"STOP"{grounding}}}],"usageMetadata":{{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}},"modelVersion":"u","responseId":"r"}}"#
    )
}

fn responses(shape: &str, count: usize) -> String {
    let items = match shape {
        "texts" | "citations" => {
            let parts = list(count, |number| match shape {
                "texts" => {
                    format!(r#"{{"type":"output_text","text":"A{number}","annotations":[]}}"#)
                }
                _ => format!(
                    r#"{{"type":"output_text","text":"A","annotations":[{{"type":"url_citation","start_index":0,"end_index":1,"url":"https://a.example/{number}","title":"T"}}]}}"#
                ),
            });
            format!(
                r#"{{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{parts}]}}"#
            )
        }
        _ => list(count, |number| match shape {
            "calls" => format!(
                r#"{{"type":"function_call","id":"fc_{number}","call_id":"call_{number}","name":"t{number}","arguments":"{{}}","status":"completed"}}"#
            ),
            "calls of renamed tools" => format!(
                r#"{{"type":"function_call","id":"fc_{number}","call_id":"call_{number}","name":"t_{number}","arguments":"{{}}","status":"completed"}}"#
            ),
            "citations between calls" => format!(
                r#"{{"type":"message","id":"msg_{number}","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"A","annotations":[{{"type":"url_citation","start_index":0,"end_index":1,"url":"https://a.example/{number}","title":"T"}}]}}]}},{{"type":"function_call","id":"fc_{number}","call_id":"call_{number}","name":"t","arguments":"{{}}","status":"completed"}}"#
            ),
            "reasoning" => format!(
                r#"{{"type":"reasoning","id":"rs_{number}","summary":[{{"type":"summary_text","text":"t{number}"}}],"encrypted_content":"c2ln"}}"#
            ),
            _ => format!(r#"{{"type":"unknown{number}","id":"u_{number}"}}"#),
        }),
    };
    format!(
        r#"{{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"u","output":[{items}],"usage":{{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}}"#
    )
}

fn response(format: Format, shape: &str, count: usize) -> Vec<u8> {
    let body = match format {
        Format::Chat => chat(shape, count),
        Format::Messages => messages(shape, count),
        Format::Native => native(shape, count),
        _ => responses(shape, count),
    };
    body.into_bytes()
}

pub fn translate(from: Format, to: Format, body: &[u8], options: &ResponseOptions) {
    let summary = RequestSummary::new(to.codec(), Operation::Generate, Some(MODEL), b"{}");
    let summary = summary.expect("a request");
    let json = "application/json";
    let translator = ResponseTranslator::new(to, from, &summary, options.clone(), json, usize::MAX);
    let mut translator = translator.expect("a translator");
    let mut chunk = Some(Bytes::copy_from_slice(body));
    let _ = translator.translate_chunk(&mut chunk, true);
    for loss in &translator.take_losses().0 {
        to.codec().path_of(&loss.location);
    }
}

#[test]
fn the_work_for_a_response_grows_with_its_size() {
    let mut found = Vec::new();
    for (to, from) in pairs() {
        for shape in SHAPES {
            let renamed = if shape == "calls of renamed tools" {
                COUNT * 4
            } else {
                0
            };
            let options = options(false, renamed);
            let make = |count| response(from, shape, count);
            let work = |body: &[u8]| translate(from, to, body, &options);
            if let Some(growth) = excess(COUNT, make, work) {
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

//! Requests of every shape, translated to every format and passed through.

use bytes::Bytes;
use omniglot::formats::{Capabilities, Operation, RequestHead, UpstreamTarget};
use omniglot::model::{Format, Losses};
use omniglot::translate::{self, ModelTraits, RequestSummary};

use crate::measure::{check, excess, list, pairs};

const MODEL: &str = "m";
const COUNT: usize = 300;

/// What there may be many of in a request.
const SHAPES: [&str; 22] = [
    "turns",
    "turns of one role",
    "text parts",
    "images",
    "unknown parts",
    "system parts",
    "tools",
    "illegal tool names",
    "chosen tools",
    "calls and results",
    "calls and results in reverse",
    "calls and results by turns",
    "unanswered calls",
    "calls of undeclared tools",
    "reasoning",
    "foreign signatures",
    "schema properties",
    "enum values",
    "schema references",
    "unknown fields",
    "unknown fields of parts",
    "stop sequences",
];

/// A body of a format: its turns, its tools, and other fields.
pub fn body(format: Format, turns: &str, tools: &str, fields: &str) -> Vec<u8> {
    let turns_field = match format {
        Format::Chat | Format::Messages => "messages",
        Format::Responses => "input",
        _ => "contents",
    };
    let model = match format {
        Format::Native => String::new(),
        Format::Messages => format!(r#""model":"{MODEL}","max_tokens":100,"#),
        _ => format!(r#""model":"{MODEL}","#),
    };
    let tools = match (tools.is_empty(), format) {
        (true, _) => String::new(),
        (false, Format::Native) => format!(r#","tools":[{{"functionDeclarations":[{tools}]}}]"#),
        (false, _) => format!(r#","tools":[{tools}]"#),
    };
    let fields = match fields.is_empty() {
        true => String::new(),
        false => format!(",{fields}"),
    };
    format!(r#"{{{model}"{turns_field}":[{turns}]{tools}{fields}}}"#).into_bytes()
}

fn text_part(format: Format, text: &str) -> String {
    match format {
        Format::Native => format!(r#"{{"text":"{text}"}}"#),
        Format::Responses => format!(r#"{{"type":"input_text","text":"{text}"}}"#),
        _ => format!(r#"{{"type":"text","text":"{text}"}}"#),
    }
}

fn image_part(format: Format) -> String {
    let data = "iVBORw0KGgo=";
    match format {
        Format::Chat => format!(
            r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#
        ),
        Format::Messages => format!(
            r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#
        ),
        Format::Responses => {
            format!(r#"{{"type":"input_image","image_url":"data:image/png;base64,{data}"}}"#)
        }
        _ => format!(r#"{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}"#),
    }
}

fn user_turn(format: Format, parts: &str) -> String {
    match format {
        Format::Native => format!(r#"{{"role":"user","parts":[{parts}]}}"#),
        _ => format!(r#"{{"role":"user","content":[{parts}]}}"#),
    }
}

fn assistant_turn(format: Format, text: &str) -> String {
    match format {
        Format::Native => format!(r#"{{"role":"model","parts":[{{"text":"{text}"}}]}}"#),
        _ => format!(r#"{{"role":"assistant","content":"{text}"}}"#),
    }
}

pub fn question(format: Format) -> String {
    user_turn(format, &text_part(format, "Hi"))
}

pub fn call(format: Format, number: usize, name: &str) -> String {
    match format {
        Format::Chat => format!(
            r#"{{"id":"call_{number}","type":"function","function":{{"name":"{name}","arguments":"{{}}"}}}}"#
        ),
        Format::Messages => {
            format!(r#"{{"type":"tool_use","id":"toolu_{number}","name":"{name}","input":{{}}}}"#)
        }
        Format::Responses => format!(
            r#"{{"type":"function_call","call_id":"call_{number}","name":"{name}","arguments":"{{}}"}}"#
        ),
        _ => format!(r#"{{"functionCall":{{"id":"call_{number}","name":"{name}","args":{{}}}}}}"#),
    }
}

fn result(format: Format, number: usize, name: &str) -> String {
    match format {
        Format::Chat => {
            format!(r#"{{"role":"tool","tool_call_id":"call_{number}","content":"ok"}}"#)
        }
        Format::Messages => {
            format!(r#"{{"type":"tool_result","tool_use_id":"toolu_{number}","content":"ok"}}"#)
        }
        Format::Responses => {
            format!(r#"{{"type":"function_call_output","call_id":"call_{number}","output":"ok"}}"#)
        }
        _ => format!(
            r#"{{"functionResponse":{{"id":"call_{number}","name":"{name}","response":{{"output":"ok"}}}}}}"#
        ),
    }
}

/// A turn of calls.
pub fn calls_turn(format: Format, calls: &str) -> String {
    match format {
        Format::Chat => format!(r#"{{"role":"assistant","tool_calls":[{calls}]}}"#),
        Format::Messages => format!(r#"{{"role":"assistant","content":[{calls}]}}"#),
        Format::Responses => calls.to_owned(),
        _ => format!(r#"{{"role":"model","parts":[{calls}]}}"#),
    }
}

fn results_turn(format: Format, results: &str) -> String {
    match format {
        Format::Chat | Format::Responses => results.to_owned(),
        _ => user_turn(format, results),
    }
}

pub fn tool(format: Format, name: &str, schema: &str) -> String {
    match format {
        Format::Chat => format!(
            r#"{{"type":"function","function":{{"name":"{name}","parameters":{schema},"strict":true}}}}"#
        ),
        Format::Messages => format!(r#"{{"name":"{name}","input_schema":{schema},"strict":true}}"#),
        Format::Responses => {
            format!(r#"{{"type":"function","name":"{name}","parameters":{schema},"strict":true}}"#)
        }
        _ => format!(r#"{{"name":"{name}","parametersJsonSchema":{schema}}}"#),
    }
}

/// A turn with that many parts of reasoning, each with a signature of the format or of another one.
fn reasoning_turn(format: Format, count: usize, is_foreign: bool) -> String {
    let signature = match is_foreign {
        true => "b21uaWdsb3QvMSBuCnNpZw==",
        false => "c2lnbmF0dXJl",
    };
    let part = |number: usize| match format {
        Format::Chat => format!(
            r#"{{"type":"reasoning.text","text":"t{number}","signature":"{signature}","index":{number}}}"#
        ),
        Format::Messages => {
            format!(r#"{{"type":"thinking","thinking":"t{number}","signature":"{signature}"}}"#)
        }
        Format::Responses => format!(
            r#"{{"type":"reasoning","id":"rs_{number}","summary":[{{"type":"summary_text","text":"t{number}"}}],"encrypted_content":"{signature}"}}"#
        ),
        _ => format!(r#"{{"text":"t{number}","thought":true,"thoughtSignature":"{signature}"}}"#),
    };
    let parts = list(count, part);
    match format {
        Format::Chat => {
            format!(r#"{{"role":"assistant","content":"A","reasoning_details":[{parts}]}}"#)
        }
        Format::Messages => format!(
            r#"{{"role":"assistant","content":[{parts},{}]}}"#,
            text_part(format, "A")
        ),
        Format::Responses => format!("{parts},{}", assistant_turn(format, "A")),
        _ => format!(r#"{{"role":"model","parts":[{parts},{{"text":"A"}}]}}"#),
    }
}

fn system(format: Format, count: usize) -> (String, String) {
    let texts = list(count, |number| text_part(format, &format!("s{number}")));
    match format {
        Format::Chat | Format::Responses => (
            format!(r#"{{"role":"system","content":[{texts}]}},"#),
            String::new(),
        ),
        Format::Messages => (String::new(), format!(r#""system":[{texts}]"#)),
        _ => (
            String::new(),
            format!(r#""systemInstruction":{{"parts":[{texts}]}}"#),
        ),
    }
}

fn chosen(format: Format, names: &str) -> String {
    match format {
        Format::Chat => {
            let tools = names
                .split(',')
                .map(|name| format!(r#"{{"type":"function","function":{{"name":{name}}}}}"#));
            let tools: Vec<String> = tools.collect();
            format!(
                r#""tool_choice":{{"type":"allowed_tools","allowed_tools":{{"mode":"auto","tools":[{}]}}}}"#,
                tools.join(",")
            )
        }
        Format::Responses => {
            let tools = names
                .split(',')
                .map(|name| format!(r#"{{"type":"function","name":{name}}}"#));
            let tools: Vec<String> = tools.collect();
            format!(
                r#""tool_choice":{{"type":"allowed_tools","mode":"auto","tools":[{}]}}"#,
                tools.join(",")
            )
        }
        Format::Messages => r#""tool_choice":{"type":"auto"}"#.to_owned(),
        _ => format!(
            r#""toolConfig":{{"functionCallingConfig":{{"mode":"ANY","allowedFunctionNames":[{names}]}}}}"#
        ),
    }
}

/// A request of a shape, with so many elements.
pub fn request(format: Format, shape: &str, count: usize) -> Vec<u8> {
    let ask = question(format);
    let plain = r#"{"type":"object"}"#;
    let in_turn = |parts: &str| body(format, &user_turn(format, parts), "", "");
    let with_schema = |schema: &str| body(format, &ask, &tool(format, "t", schema), "");
    let conversation = |calls: &str, results: &str| {
        let (calls, results) = (calls_turn(format, calls), results_turn(format, results));
        body(
            format,
            &format!("{ask},{calls},{results}"),
            &tool(format, "t", plain),
            "",
        )
    };
    let calls = list(count, |number| call(format, number, "t"));
    match shape {
        "turns" => {
            let turns = list(count, |number| match number % 2 {
                0 => question(format),
                _ => assistant_turn(format, "A"),
            });
            body(format, &turns, "", "")
        }
        "turns of one role" => body(format, &list(count, |_| question(format)), "", ""),
        "text parts" => in_turn(&list(count, |_| text_part(format, "A"))),
        "images" => in_turn(&list(count, |_| image_part(format))),
        "unknown parts" => in_turn(&list(count, |number| match format {
            Format::Native => format!(r#"{{"unknown{number}":1}}"#),
            _ => format!(r#"{{"type":"unknown{number}"}}"#),
        })),
        "system parts" => {
            let (turn, field) = system(format, count);
            body(format, &(turn + &ask), "", &field)
        }
        "tools" => {
            let tools = list(count, |number| tool(format, &format!("t{number}"), plain));
            body(format, &ask, &tools, "")
        }
        "illegal tool names" => {
            let tools = list(count, |number| tool(format, &format!("t {number}"), plain));
            body(format, &ask, &tools, "")
        }
        "chosen tools" => {
            let tools = list(count, |number| tool(format, &format!("t{number}"), plain));
            let names = list(count / 2, |number| format!(r#""t{}""#, number * 2));
            body(format, &ask, &tools, &chosen(format, &names))
        }
        "calls and results" => {
            conversation(&calls, &list(count, |number| result(format, number, "t")))
        }
        "calls and results in reverse" => {
            let results = list(count, |number| result(format, count - 1 - number, "t"));
            conversation(&calls, &results)
        }
        "calls and results by turns" => {
            let turns = list(count, |number| {
                let call = calls_turn(format, &call(format, number, "t"));
                format!(
                    "{call},{}",
                    results_turn(format, &result(format, number, "t"))
                )
            });
            body(
                format,
                &format!("{ask},{turns}"),
                &tool(format, "t", plain),
                "",
            )
        }
        "unanswered calls" => {
            let turns = format!("{ask},{},{ask}", calls_turn(format, &calls));
            body(format, &turns, &tool(format, "t", plain), "")
        }
        "calls of undeclared tools" => {
            let calls = list(count, |number| call(format, number, &format!("t {number}")));
            let results = list(count, |number| {
                result(format, number, &format!("t {number}"))
            });
            conversation(&calls, &results)
        }
        "reasoning" => {
            let turns = format!("{ask},{},{ask}", reasoning_turn(format, count, false));
            body(format, &turns, "", "")
        }
        "foreign signatures" => {
            let turns = format!("{ask},{},{ask}", reasoning_turn(format, count, true));
            body(format, &turns, "", "")
        }
        "schema properties" => {
            let properties = list(count, |number| {
                format!(r#""p{number}":{{"type":"string"}}"#)
            });
            let required = list(count, |number| format!(r#""p{number}""#));
            with_schema(&format!(
                r#"{{"type":"object","properties":{{{properties}}},"required":[{required}],"additionalProperties":false}}"#
            ))
        }
        "enum values" => {
            let values = list(count, |number| format!(r#""v{number}""#));
            with_schema(&format!(
                r#"{{"type":"object","properties":{{"p":{{"type":"string","enum":[{values}]}}}}}}"#
            ))
        }
        "schema references" => {
            let definitions = list(count, |number| {
                format!(r#""d{number}":{{"type":"string"}}"#)
            });
            let properties = list(count, |number| {
                format!(r##""p{number}":{{"$ref":"#/$defs/d{number}"}}"##)
            });
            with_schema(&format!(
                r#"{{"type":"object","properties":{{{properties}}},"$defs":{{{definitions}}}}}"#
            ))
        }
        "unknown fields" => {
            let fields = list(count, |number| format!(r#""unknown{number}":1"#));
            body(format, &ask, "", &fields)
        }
        "unknown fields of parts" => {
            let part = text_part(format, "A");
            let part = part.trim_end_matches('}');
            in_turn(&list(count, |number| {
                format!(r#"{part},"unknown{number}":1}}"#)
            }))
        }
        "stop sequences" => {
            let stops = list(count, |number| format!(r#""s{number}""#));
            let field = match format {
                Format::Native => format!(r#""generationConfig":{{"stopSequences":[{stops}]}}"#),
                Format::Messages => format!(r#""stop_sequences":[{stops}]"#),
                _ => format!(r#""stop":[{stops}]"#),
            };
            body(format, &ask, "", &field)
        }
        other => panic!("no shape {other}"),
    }
}

fn head() -> RequestHead<'static> {
    RequestHead {
        path_model: Some(MODEL),
        ..RequestHead::default()
    }
}

/// All that is done with a request on its way; that it may be refused is of no interest.
pub fn forward(from: Format, to: Format, body: &[u8]) {
    let path_model = (from == Format::Native).then_some(MODEL);
    let summary = RequestSummary::new(from.codec(), Operation::Generate, path_model, body);
    let Ok(mut summary) = summary else {
        return;
    };
    summary.estimate(from.codec(), &ModelTraits::default(), body);
    let capabilities = Capabilities::default();
    let target = UpstreamTarget {
        model: "upstream-model",
        stream: false,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "vendor",
        images_only: false,
    };
    let mut losses = Losses::default();
    if from != to {
        let _ = translate::request(from, to, &head(), body, &target, &mut losses);
    } else if summary
        .check_passthrough(from.codec(), body, &ModelTraits::default(), true)
        .is_ok()
    {
        let body = Bytes::copy_from_slice(body);
        summary.passthrough_body(from.codec(), &body, "upstream-model", "vendor");
        let text = std::str::from_utf8(&body).expect("text");
        from.codec().strip_foreign_signatures(text, &mut losses);
    }
    for loss in &losses.0 {
        from.codec().path_of(&loss.location);
    }
}

#[test]
fn the_work_for_a_request_grows_with_its_size() {
    let mut found = Vec::new();
    for (from, to) in pairs() {
        for shape in SHAPES {
            let make = |count| request(from, shape, count);
            if let Some(growth) = excess(COUNT, make, |body| forward(from, to, body)) {
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

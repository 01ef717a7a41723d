//! Shapes whose elements are looked up among each other. A lookup is so short that only thousands of them show in the
//! work for a body, so that these are measured with more elements than all pairs of formats could be.

use bytes::{Buf as _, Bytes};
use omniglot::formats::{FieldPlacement, place_fields};
use omniglot::json::{Edit, splice};
use omniglot::model::Format;

use crate::measure::{check, excess, list};
use crate::requests::{body, call, calls_turn, forward, question, request};
use crate::streams::{stream, translate};

/// A quarter of the tools that a request may have.
const COUNT: usize = 2500;

/// Many system turns before the first question.
fn system_turns(count: usize) -> Vec<u8> {
    let format = Format::Responses;
    let turns = list(count, |number| {
        format!(r#"{{"role":"system","content":"s{number}"}}"#)
    });
    body(format, &format!("{turns},{}", question(format)), "", "")
}

/// Calls of as many tools, none of which is declared.
fn undeclared_tools(count: usize) -> Vec<u8> {
    let format = Format::Chat;
    let calls = list(count, |number| call(format, number, &format!("t{number}")));
    let turns = format!("{},{}", question(format), calls_turn(format, &calls));
    body(format, &turns, "", "")
}

/// A call whose arguments come one by one.
fn partial_arguments(count: usize) -> Vec<u8> {
    let event = |call: &str, finish: &str| {
        format!(
            "data: {{\"candidates\":[{{\"index\":0,\"content\":{{\"role\":\"model\",\"parts\":[{{\"functionCall\":{{{call}}}}}]}}{finish}}}]}}\n\n"
        )
    };
    let mut wire = event(r#""name":"t","willContinue":true"#, "");
    for number in 0..count {
        let argument = format!(
            r#""partialArgs":[{{"jsonPath":"$.a{number}","stringValue":"v"}}],"willContinue":true"#
        );
        wire += &event(&argument, "");
    }
    wire += &event("", r#","finishReason":"STOP""#);
    wire.into_bytes()
}

/// A final response that lists as many items as were streamed, under other ids.
fn listed_items(count: usize) -> Vec<u8> {
    let event = |data: String| format!("data: {data}\n\n");
    let item = |number: usize, id: &str| {
        format!(
            r#"{{"type":"message","id":"{id}_{number}","role":"assistant","content":[{{"type":"output_text","text":"x"}}]}}"#
        )
    };
    let streamed = (0..count).map(|number| {
        let item = item(number, "streamed");
        event(format!(
            r#"{{"type":"response.output_item.done","output_index":{number},"item":{item}}}"#
        ))
    });
    let listed = list(count, |number| item(number, "listed"));
    let last = event(format!(
        r#"{{"type":"response.completed","response":{{"id":"r","created_at":1,"model":"u","status":"completed","output":[{listed}]}}}}"#
    ));
    (streamed.collect::<String>() + &last).into_bytes()
}

/// References to one schema, each of which spells the way to it differently: `~` may be written `~0`.
fn spelled_references(count: usize) -> Vec<u8> {
    let spelled = |number: usize| -> String {
        let letters = (0..16).map(|bit| if number >> bit & 1 == 1 { "~0" } else { "~" });
        letters.collect()
    };
    let references = list(count, |number| {
        format!(r##""p{number}":{{"$ref":"#/{}/t"}}"##, spelled(number))
    });
    let members = list(count, |number| format!(r#""m{number}":0"#));
    let schema = format!(
        r#"{{"type":"object","properties":{{{references}}},"{}":{{{members},"t":{{}}}}}}"#,
        "~".repeat(16)
    );
    let tool = format!(r#"{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}"#);
    body(Format::Chat, &question(Format::Chat), &tool, "")
}

/// A schema that has a keyword many times.
fn repeated_keyword(count: usize) -> Vec<u8> {
    let keywords = list(count, |_| r#""oneOf":[]"#.to_owned());
    let format = format!(
        r#""response_format":{{"type":"json_schema","json_schema":{{"name":"a","schema":{{"type":"object",{keywords}}}}}}}"#
    );
    body(Format::Chat, &question(Format::Chat), "", &format)
}

/// What is lost stands below a property with a long name.
fn losses_below_a_name(count: usize) -> Vec<u8> {
    let properties = list(count, |number| {
        format!(r#""p{number}":{{"type":"STRING","example":"a"}}"#)
    });
    let schema = format!(
        r#"{{"type":"OBJECT","properties":{{"{}":{{"type":"OBJECT","properties":{{{properties}}}}}}}}}"#,
        "x".repeat(20 * count)
    );
    let tool = format!(r#"{{"name":"f","parameters":{schema}}}"#);
    body(Format::Native, &question(Format::Native), &tool, "")
}

/// Betas in the body, and as many others in the header.
fn betas(count: usize) -> Vec<u8> {
    let betas = list(count, |number| format!("\"body-{number}\""));
    format!(r#"{{"anthropic_beta":[{betas}]}}"#).into_bytes()
}

fn place_betas(body: &[u8]) {
    let betas = (0..COUNT).map(|number| format!("header-{number}"));
    let placement = FieldPlacement {
        betas: betas.collect(),
        ..FieldPlacement::default()
    };
    let names = Format::Messages.codec().version_fields();
    place_fields(body, &placement, names.as_ref()).expect("edits");
}

/// A long body with many short edits, written in pieces as connections do.
fn write_edited(body: &[u8]) {
    let body = Bytes::copy_from_slice(body);
    let edits = (0..body.len() / 16).map(|at| Edit {
        range: 16 * at..16 * at + 1,
        with: b"x".to_vec(),
    });
    let mut edited = splice(&body, &edits.collect::<Vec<_>>());
    while edited.has_remaining() {
        let piece = edited.chunk().len();
        edited.advance(piece);
    }
}

#[test]
fn elements_that_are_looked_up_among_each_other_are_no_more_work_than_others() {
    let (chat, messages, native) = (Format::Chat, Format::Messages, Format::Native);
    let mut found = Vec::new();
    let mut note = |shape: &str, growth: Option<String>| {
        found.extend(growth.map(|growth| format!("{shape}: {growth}")));
    };
    let system = |body: &[u8]| forward(Format::Responses, chat, body);
    note("system turns", excess(2 * COUNT, system_turns, system));
    for to in [messages, native, Format::Responses] {
        let chosen = |count| request(chat, "chosen tools", count);
        let growth = excess(COUNT, chosen, |body| forward(chat, to, body));
        note(&format!("chosen tools for {}", to.name()), growth);
    }
    let chosen = |count| request(native, "chosen tools", count);
    let growth = excess(COUNT, chosen, |body| forward(native, chat, body));
    note("chosen tools for chat", growth);
    let references = |body: &[u8]| forward(chat, native, body);
    note(
        "references that are spelled differently",
        excess(COUNT / 5, spelled_references, references),
    );
    let schemas = |body: &[u8]| forward(chat, messages, body);
    note(
        "repeated keywords",
        excess(COUNT, repeated_keyword, schemas),
    );
    let losses = |body: &[u8]| forward(native, chat, body);
    note(
        "losses below a long name",
        excess(COUNT / 5, losses_below_a_name, losses),
    );
    let undeclared = |body: &[u8]| forward(chat, messages, body);
    note(
        "undeclared tools",
        excess(COUNT, undeclared_tools, undeclared),
    );
    let blocks = |count| stream(messages, "interleaved calls", count);
    let growth = excess(COUNT, blocks, |wire| translate(messages, chat, wire));
    note("open blocks", growth);
    let growth = excess(2 * COUNT, listed_items, |wire| {
        translate(Format::Responses, chat, wire)
    });
    note("items of the final response", growth);
    note("betas", excess(2 * COUNT, betas, place_betas));
    let long = |count| vec![b' '; 100 * count];
    note("edits", excess(2 * COUNT, long, write_edited));
    let arguments = |wire: &[u8]| translate(native, chat, wire);
    note(
        "partial arguments",
        excess(COUNT, partial_arguments, arguments),
    );
    check(found);
}

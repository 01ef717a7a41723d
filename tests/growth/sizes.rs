//! What a request becomes is not much longer than what it was.

use omniglot::formats::{Capabilities, RequestHead, UpstreamTarget};
use omniglot::model::{Format, Losses};
use omniglot::translate;

use crate::measure::{list, pairs};
use crate::requests::{body, question, tool};

/// How many times a request may become longer, and what of that is of no account.
const TIMES: usize = 4;
const SMALL: usize = 2 << 20;

/// Schemas that stand for far longer ones.
fn schemas() -> [(&'static str, usize, String); 3] {
    let properties = |count: usize, of: &str| {
        list(count, |number| {
            format!(r##""p{number}":{{"$ref":"#/$defs/{of}"}}"##)
        })
    };
    let object = |count: usize, of: &str| {
        let properties = properties(count, of);
        format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
    };
    let of_all = |schema: String, definitions: String| {
        let open = schema.trim_end_matches('}');
        let closing = &schema[open.len() + 1..];
        format!(r#"{open}{closing},"$defs":{{{definitions}}}}}"#)
    };
    let words = list(10_000, |number| format!(r#""w{number}""#));
    let text = "x".repeat(100_000);
    let (a, b) = (object(14, "b"), object(14, "c"));
    [
        (
            "a long description",
            1,
            of_all(
                object(500, "d"),
                format!(r#""d":{{"type":"string","description":"{text}"}}"#),
            ),
        ),
        (
            "a long list",
            1,
            of_all(
                object(500, "d"),
                format!(r#""d":{{"type":"string","enum":[{words}]}}"#),
            ),
        ),
        (
            "definitions in definitions",
            300,
            of_all(
                object(14, "a"),
                format!(r#""a":{a},"b":{b},"c":{{"type":"string"}}"#),
            ),
        ),
    ]
}

fn translated(from: Format, to: Format, body: &[u8]) -> usize {
    let capabilities = Capabilities::default();
    let target = UpstreamTarget {
        model: "upstream-model",
        stream: false,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "vendor",
        images_only: false,
    };
    let head = RequestHead {
        path_model: Some("m"),
        ..RequestHead::default()
    };
    let mut losses = Losses::default();
    let translated = translate::request(from, to, &head, body, &target, &mut losses);
    translated.expect("a request").body.len()
}

#[test]
fn a_short_schema_becomes_no_long_one() {
    for (from, to) in pairs().filter(|(from, to)| from != to) {
        for (shape, tools, schema) in schemas() {
            let tools = list(tools, |number| tool(from, &format!("t{number}"), &schema));
            let body = body(from, &question(from), &tools, "");
            let length = translated(from, to, &body);
            let most = TIMES * body.len() + SMALL;
            let (from, to) = (from.name(), to.name());
            assert!(
                length <= most,
                "{from} → {to}, {shape}: {length} bytes of {}",
                body.len()
            );
        }
    }
}

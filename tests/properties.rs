//! The properties of fuzz/src/checks hold for the golden cases, so that they compile and hold for valid input.

#[path = "../fuzz/src/checks/mod.rs"]
mod checks;

use std::fs;
use std::path::Path;

// The checks import these from the crate.
use omniglot::{event_stream, formats, json, model, sse, translate};
use serde_json::Value;

use model::Format;

/// Returns a seed as fuzz/seeds writes it: two formats, two parameters and a body. A case for several formats uses the
/// first.
fn seed(case: &Value, parameters: [u8; 2], body: &[u8]) -> Vec<u8> {
    let number = |key: &str| {
        let name = case[key].as_str().unwrap_or("chat");
        let at = Format::ALL.iter().position(|one| one.name() == name);
        u8::try_from(at.expect("a format")).expect("a small number")
    };
    [&[number("from"), number("to")][..], &parameters, body].concat()
}

/// Encodes a stream as tests/golden.rs does.
fn encode_stream(events: &Value) -> String {
    let event = |event: &Value| {
        let data = event
            .as_str()
            .map_or_else(|| event.to_string(), str::to_owned);
        let name = event["type"].as_str();
        let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
        format!("{name}data: {data}\n\n")
    };
    events.as_array().into_iter().flatten().map(event).collect()
}

fn check(case: &Value) {
    let given = &case["input"];
    let body = given.to_string().into_bytes();
    for parameters in [[0, 0], [85, 170], [255, 3]] {
        checks::json::check(&seed(case, parameters, &body));
        match case["kind"].as_str() {
            Some("request") => checks::requests::check(&seed(case, parameters, &body)),
            Some("stream") => {
                let stream = encode_stream(given);
                checks::streams::check(&seed(case, parameters, stream.as_bytes()));
                checks::framing::check(&seed(case, parameters, stream.as_bytes()));
            }
            _ => {
                checks::replies::check(&seed(case, parameters, &body));
                let body = given["body"].to_string();
                checks::errors::check(&seed(case, parameters, body.as_bytes()));
            }
        }
    }
}

#[test]
fn golden_cases_have_the_properties() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut checked = 0;
    for pair in fs::read_dir(root).expect("a directory") {
        let pair = pair.expect("an entry").path();
        for file in fs::read_dir(pair).into_iter().flatten() {
            let text = fs::read_to_string(file.expect("an entry").path()).expect("text");
            let cases = match serde_json::from_str(&text).expect("JSON") {
                Value::Array(rows) => rows,
                case => vec![case],
            };
            cases.iter().for_each(check);
            checked += cases.len();
        }
    }
    assert!(checked > 400, "{checked} cases");
}

//! The properties of fuzz/src/checks hold for the golden cases, so that they compile and hold for valid input.

#[path = "../fuzz/src/checks/mod.rs"]
mod checks;

use std::fs;
use std::path::Path;

// The checks import these from the crate.
use omniglot::{event_stream, formats, json, model, sse, translate};
use serde_json::{Value, json};

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
    let text = given
        .as_str()
        .map_or_else(|| given.to_string(), str::to_owned);
    let body = text.into_bytes();
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

/// The cases of a file: one, a list of rows, or a list of inputs for the formats that the folder names.
fn cases_of(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("text");
    let case: Value = match serde_json::from_str(&text).expect("JSON") {
        Value::Array(rows) => return rows,
        case => case,
    };
    let Some(inputs) = case["cases"].as_array() else {
        return vec![case];
    };
    let folder = file.parent().and_then(Path::file_name).expect("a folder");
    let pair = folder.to_str().and_then(|folder| folder.split_once('-'));
    let (from, to) = pair.expect("two formats");
    // Images have no seeds.
    let is_seeded = |name: &str| Format::ALL.iter().any(|format| format.name() == name);
    if !is_seeded(from) || !is_seeded(to) {
        return Vec::new();
    }
    let of_pair = |input: &Value| json!({"kind": case["kind"], "from": from, "to": to, "input": input["input"]});
    inputs.iter().map(of_pair).collect()
}

#[test]
fn golden_cases_have_the_properties() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut checked = 0;
    for root in ["golden", "cases"] {
        for pair in fs::read_dir(tests.join(root)).expect("a directory") {
            let pair = pair.expect("an entry").path();
            for file in fs::read_dir(pair).into_iter().flatten() {
                let cases = cases_of(&file.expect("an entry").path());
                cases.iter().for_each(check);
                checked += cases.len();
            }
        }
    }
    assert!(checked > 1000, "{checked} cases");
}

//! The properties that fuzzing holds, on the hand-made cases: so that they stay built, and true of what is well-formed.

#[path = "../fuzz/src/checks/mod.rs"]
mod checks;

use std::fs;
use std::path::Path;

// Where the properties look for them.
use omniglot::{formats, json, model, sse, translate};
use serde_json::Value;

use model::Format;

/// As fuzz/seeds makes them: two formats, two dice, a body. What goes to several formats goes to
/// the first.
fn seed(case: &Value, dice: [u8; 2], body: &[u8]) -> Vec<u8> {
    let number = |key: &str| {
        let name = case[key].as_str().unwrap_or("chat");
        let at = Format::ALL.iter().position(|one| one.name() == name);
        u8::try_from(at.expect("a format")).expect("a small number")
    };
    [&[number("from"), number("to")][..], &dice, body].concat()
}

/// As tests/golden.rs puts a stream on the wire.
fn wire(events: &Value) -> String {
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
    for dice in [[0, 0], [85, 170], [255, 3]] {
        checks::json::check(&seed(case, dice, &body));
        match case["kind"].as_str() {
            Some("request") => checks::requests::check(&seed(case, dice, &body)),
            Some("stream") => {
                let wire = wire(given);
                checks::streams::check(&seed(case, dice, wire.as_bytes()));
                checks::framing::check(&seed(case, dice, wire.as_bytes()));
            }
            _ => {
                checks::replies::check(&seed(case, dice, &body));
                let body = given["body"].to_string();
                checks::errors::check(&seed(case, dice, body.as_bytes()));
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

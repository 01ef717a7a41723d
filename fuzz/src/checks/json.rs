//! JSON that is parsed by field and by element, and edited in place, agrees with `serde_json`.

use crate::json::{ArrayElements, Edit, Fields, replace};
use crate::model::Json;
use serde_json::{Map, Value};

use super::input::Input;

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    check_fields(input.body);
    check_elements(input.body, input.parameters);
    check_edits(input.body, input.parameters);
}

/// Every field of an object can be taken once, with the value that a parser sees.
fn check_fields(body: &[u8]) {
    let parsed = serde_json::from_slice::<Map<String, Value>>(body);
    let (Ok(mut fields), Ok(parsed)) = (Fields::of_body(body), parsed) else {
        return;
    };
    let tree: Json<'_> = serde_json::from_slice(body).expect("JSON");
    let entries = tree.as_object().map_or(0, |object| object.as_vec().len());
    for (key, value) in &parsed {
        let taken = fields.take(key);
        // Of a duplicate key, `serde_json` keeps the last value, and `Fields` the first.
        if entries == parsed.len() {
            let taken = taken.map(|value| serde_json::to_value(&value).expect("JSON"));
            assert_eq!(taken.unwrap_or(Value::Null), *value);
        }
    }
}

/// An array is split into the elements that a parser sees, however it is split into chunks.
fn check_elements(body: &[u8], parameters: [u8; 2]) {
    let whole = split(&[body]);
    let position = |parameter: u8| body.len() * usize::from(parameter) / 256;
    let (first, second) = (
        position(parameters[0].min(parameters[1])),
        position(parameters[0].max(parameters[1])),
    );
    assert_eq!(
        whole,
        split(&[&body[..first], &body[first..second], &body[second..]])
    );
    let Ok(parsed) = serde_json::from_slice::<Vec<Value>>(body) else {
        return;
    };
    assert!(whole.1, "closed");
    let seen: Vec<Value> = whole
        .0
        .iter()
        .map(|element| serde_json::from_slice(element).expect("JSON"))
        .collect();
    // `ArrayElements` returns objects and arrays only.
    let bracketed = |value: &Value| value.is_object() || value.is_array();
    let parsed: Vec<Value> = parsed.into_iter().filter(bracketed).collect();
    assert_eq!(seen, parsed);
}

/// Returns the elements of an array that arrives in chunks, and whether it is closed.
fn split(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let (mut elements, mut seen) = (ArrayElements::default(), Vec::new());
    for chunk in chunks {
        elements.push(chunk, |element, end| {
            assert_eq!(element.last(), Some(&chunk[end - 1]));
            seen.push(element.to_vec());
        });
    }
    (seen, elements.closed())
}

/// Edits change their ranges and nothing else.
fn check_edits(body: &[u8], parameters: [u8; 2]) {
    let position = |parameter: u8| body.len() * usize::from(parameter) / 255;
    let range =
        position(parameters[0].min(parameters[1]))..position(parameters[0].max(parameters[1]));
    let with = b"\"new\"".to_vec();
    let mut expected = body.to_vec();
    expected.splice(range.clone(), with.iter().copied());
    assert_eq!(replace(body, &[Edit { range, with }]), expected);
}

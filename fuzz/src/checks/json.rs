//! JSON read in pieces and by name, and edited in place, as a parser would have it.

use crate::json::{ArrayElements, Edit, Fields, replace};
use crate::model::Json;
use serde_json::{Map, Value};

use super::input::Input;

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    fields(input.body);
    elements(input.body, input.dice);
    edits(input.body, input.dice);
}

/// Every field of an object can be taken once, with the value that a parser sees.
fn fields(body: &[u8]) {
    let parsed = serde_json::from_slice::<Map<String, Value>>(body);
    let (Ok(mut fields), Ok(parsed)) = (Fields::of_body(body), parsed) else {
        return;
    };
    let tree: Json<'_> = serde_json::from_slice(body).expect("JSON");
    let entries = tree.as_object().map_or(0, |object| object.as_vec().len());
    for (key, value) in &parsed {
        let taken = fields.take(key);
        // Of a key that stands there twice a parser keeps the last; here the first counts.
        if entries == parsed.len() {
            let taken = taken.map(|value| serde_json::to_value(&value).expect("JSON"));
            assert_eq!(taken.unwrap_or(Value::Null), *value);
        }
    }
}

/// An array comes apart where a parser sees its elements, however it arrives.
fn elements(body: &[u8], dice: [u8; 2]) {
    let whole = split(&[body]);
    let cut = |dice: u8| body.len() * usize::from(dice) / 256;
    let (first, second) = (cut(dice[0].min(dice[1])), cut(dice[0].max(dice[1])));
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
    // Only what has brackets of its own can be told apart without a parser.
    let bracketed = |value: &Value| value.is_object() || value.is_array();
    let parsed: Vec<Value> = parsed.into_iter().filter(bracketed).collect();
    assert_eq!(seen, parsed);
}

fn split(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let (mut elements, mut seen) = (ArrayElements::default(), Vec::new());
    for piece in pieces {
        elements.push(piece, |element, end| {
            assert_eq!(element.last(), Some(&piece[end - 1]));
            seen.push(element.to_vec());
        });
    }
    (seen, elements.closed())
}

/// Edits change their ranges and nothing else.
fn edits(body: &[u8], dice: [u8; 2]) {
    let place = |dice: u8| body.len() * usize::from(dice) / 255;
    let range = place(dice[0].min(dice[1]))..place(dice[0].max(dice[1]));
    let with = b"\"new\"".to_vec();
    let mut expected = body.to_vec();
    expected.splice(range.clone(), with.iter().copied());
    assert_eq!(replace(body, &[Edit { range, with }]), expected);
}

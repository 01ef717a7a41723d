//! Small readers of JSON: what is absent is empty.

use serde_json::Value;

/// The elements of an array; none of anything else.
pub fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a string; empty of anything else.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number; zero of anything else.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Sets a field, where there is a value.
pub fn put(body: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body[name] = value.into();
    }
}

/// A text in a few parts, cut between characters.
pub fn in_parts(text: &str) -> Vec<&str> {
    let characters = text.chars().count();
    let length = characters.div_ceil(4).clamp(1, 4096);
    let mut starts: Vec<usize> = text
        .char_indices()
        .step_by(length)
        .map(|(at, _)| at)
        .collect();
    starts.push(text.len());
    starts
        .windows(2)
        .map(|pair| &text[pair[0]..pair[1]])
        .collect()
}

/// The characters of a text from one to another.
pub fn characters(text: &str, start: u64, end: u64) -> String {
    let (start, end) = (start as usize, end as usize);
    text.chars()
        .skip(start)
        .take(end.saturating_sub(start))
        .collect()
}

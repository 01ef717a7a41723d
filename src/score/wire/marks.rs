//! Marks a body of a client, so that the upstream knows the run it belongs to.

use serde_json::{Value, json};

use super::format::WireFormat;

/// Puts words before the first text of the user, whether it stands alone or in parts.
pub fn insert(format: WireFormat, body: &mut Value, words: &str) {
    let (turns, parts) = match format {
        WireFormat::Chat | WireFormat::Messages => ("messages", "content"),
        WireFormat::Native => ("contents", "parts"),
        WireFormat::Responses => ("input", "content"),
    };
    if let Some(text) = body[turns].as_str() {
        body[turns] = json!(format!("{words}{text}"));
        return;
    }
    let turns = body[turns].as_array_mut().into_iter().flatten();
    let is_user = |turn: &&mut Value| turn["role"] == "user" || turn["role"].is_null();
    for turn in turns.filter(is_user) {
        if let Some(text) = turn[parts].as_str() {
            turn[parts] = json!(format!("{words}{text}"));
            return;
        }
        for part in turn[parts].as_array_mut().into_iter().flatten() {
            if let Some(text) = part["text"].as_str() {
                part["text"] = json!(format!("{words}{text}"));
                return;
            }
        }
    }
}

//! How a stream ends in each format: with its own mark, or with its own error.

use serde_json::Value;

use crate::asking::{Answer, error_message, events};

/// Every way of streaming.
pub const WAYS: [&str; 5] = ["chat", "messages", "native", "responses", "native array"];

pub const ARRAY: &str = "native array";

pub fn format_of(way: &str) -> &str {
    way.split(' ').next().unwrap_or(way)
}

/// Name and payload of each piece, SSE or array.
pub fn pieces(way: &str, text: &str) -> Vec<(String, Value)> {
    if way == ARRAY {
        let array: Vec<Value> = serde_json::from_str(text).unwrap_or_else(|error| {
            panic!("{error}: {text}");
        });
        return array
            .into_iter()
            .map(|piece| (String::new(), piece))
            .collect();
    }
    let value = |data: &str| serde_json::from_str(data).unwrap_or(Value::String(data.to_owned()));
    let events = events(text).into_iter();
    events.map(|(name, data)| (name, value(&data))).collect()
}

/// Whether a piece is the mark of a proper end.
pub fn is_end(way: &str, (_, data): &(String, Value)) -> bool {
    match way {
        "chat" => data["choices"][0]["finish_reason"].is_string() || data == "[DONE]",
        "messages" => data["type"] == "message_stop",
        "responses" => data["type"] == "response.completed",
        _ => data["candidates"][0]["finishReason"].is_string(),
    }
}

pub fn is_error(way: &str, (name, data): &(String, Value)) -> bool {
    match way {
        "messages" => {
            assert_eq!(data["type"] == "error", name == "error", "{name} {data}");
            name == "error" && data["error"]["message"].is_string()
        }
        "responses" if name == "response.failed" => data["response"]["error"].is_object(),
        "responses" => name == "error" && data["type"] == "error" && data["message"].is_string(),
        way if data["error"].is_object() => {
            let code = data["error"]["code"].as_u64().unwrap_or(0);
            let code = u16::try_from(code).expect("a status");
            !error_message(format_of(way), code, data).is_empty()
        }
        _ => false,
    }
}

/// How many good pieces came before the error; `None`: there was an HTTP error instead.
pub fn assert_told(way: &str, answer: &Answer, what: &str) -> Option<usize> {
    if answer.status != 200 {
        assert!(
            [500, 502].contains(&answer.status),
            "{what}: {}",
            answer.status
        );
        answer.error(format_of(way));
        return None;
    }
    let pieces = pieces(way, answer.text());
    let first = pieces.iter().position(|piece| is_error(way, piece));
    let Some(first) = first else {
        panic!("{way} {what}: no error in {}", answer.text());
    };
    for after in &pieces[first..] {
        assert!(
            is_error(way, after),
            "{way} {what}: {after:?} after an error"
        );
    }
    let ended = pieces.iter().any(|piece| is_end(way, piece));
    assert!(
        !ended,
        "{way} {what}: an end and an error: {}",
        answer.text()
    );
    Some(first)
}

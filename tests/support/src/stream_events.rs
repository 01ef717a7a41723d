//! The events of a stream in each format, and how it ends: with the format's end, or with its error.

use serde_json::Value;

use crate::requests::{Response, error_message};

/// Every kind of stream: the four formats as SSE, and native as a JSON array.
pub const STREAM_KINDS: [&str; 5] = ["chat", "messages", "native", "responses", "native array"];

/// The stream of the native format without `alt=sse`.
pub const NATIVE_ARRAY: &str = "native array";

/// Returns the format of a kind of stream.
pub fn format_of(kind: &str) -> &str {
    kind.split(' ').next().unwrap_or(kind)
}

/// Returns name and data of each event, or each element of the array without a name.
pub fn stream_events(kind: &str, text: &str) -> Vec<(String, Value)> {
    if kind == NATIVE_ARRAY {
        let array: Vec<Value> = serde_json::from_str(text).unwrap_or_else(|error| {
            panic!("{error}: {text}");
        });
        return array
            .into_iter()
            .map(|event| (String::new(), event))
            .collect();
    }
    let value = |data: &str| serde_json::from_str(data).unwrap_or(Value::String(data.to_owned()));
    let events = sse_events(text).into_iter();
    events.map(|(name, data)| (name, value(&data))).collect()
}

/// Returns whether an event ends a complete stream.
pub fn is_end(kind: &str, (_, data): &(String, Value)) -> bool {
    match kind {
        "chat" => data["choices"][0]["finish_reason"].is_string() || data == "[DONE]",
        "messages" => data["type"] == "message_stop",
        "responses" => data["type"] == "response.completed",
        _ => data["candidates"][0]["finishReason"].is_string(),
    }
}

/// Returns whether an event is an error in the shape of its format.
pub fn is_error(kind: &str, (name, data): &(String, Value)) -> bool {
    match kind {
        "messages" => {
            assert_eq!(data["type"] == "error", name == "error", "{name} {data}");
            name == "error" && data["error"]["message"].is_string()
        }
        "responses" if name == "response.failed" => data["response"]["error"].is_object(),
        "responses" => name == "error" && data["type"] == "error" && data["message"].is_string(),
        kind if data["error"].is_object() => {
            let code = data["error"]["code"].as_u64().unwrap_or(0);
            let code = u16::try_from(code).expect("a status");
            !error_message(format_of(kind), code, data).is_empty()
        }
        _ => false,
    }
}

/// Asserts that a response ends with an error, and returns how many events came before it; `None`: the whole response is
/// an HTTP error.
pub fn assert_error_event(kind: &str, response: &Response, what: &str) -> Option<usize> {
    if response.status != 200 {
        assert!(
            [500, 502].contains(&response.status),
            "{what}: {}",
            response.status
        );
        response.error(format_of(kind));
        return None;
    }
    let events = stream_events(kind, response.text());
    let first = events.iter().position(|event| is_error(kind, event));
    let Some(first) = first else {
        panic!("{kind} {what}: no error in {}", response.text());
    };
    for after in &events[first..] {
        assert!(
            is_error(kind, after),
            "{kind} {what}: {after:?} after an error"
        );
    }
    let ended = events.iter().any(|event| is_end(kind, event));
    assert!(
        !ended,
        "{kind} {what}: an end and an error: {}",
        response.text()
    );
    Some(first)
}

/// Returns name and data of each event of an SSE stream, which must end with a complete one.
pub fn sse_events(text: &str) -> Vec<(String, String)> {
    let text = text.strip_suffix("\n\n").unwrap_or_else(|| {
        panic!("a stream ends with a blank line: {text:?}");
    });
    let event = |block: &str| {
        let of = |field: &str| {
            let mut values = block.lines().filter_map(|line| line.strip_prefix(field));
            values.next().unwrap_or_default().to_owned()
        };
        (of("event: "), of("data: "))
    };
    text.split("\n\n").map(event).collect()
}

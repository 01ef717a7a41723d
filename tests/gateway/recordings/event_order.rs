//! The order of stream events that clients rely on.

use serde_json::Value;

type Events = [(String, Value)];

pub fn assert_stream(format: &str, pieces: &Events, what: &str) {
    match format {
        "chat" => chat(pieces, what),
        "messages" => messages(pieces, what),
        "native" => native(pieces, what),
        _ => responses(pieces, what),
    }
}

fn chat(pieces: &Events, what: &str) {
    let (end, chunks) = pieces.split_last().expect("pieces");
    assert_eq!(end.1, "[DONE]", "{what}");
    let finished = |(_, chunk): &&(String, Value)| chunk["choices"][0]["finish_reason"].is_string();
    assert_eq!(chunks.iter().filter(finished).count(), 1, "{what}");
    for (name, chunk) in chunks {
        assert!(name.is_empty(), "{what}: {name}");
        assert_eq!(chunk["object"], "chat.completion.chunk", "{what}");
        assert!(
            chunk["id"].is_string() && chunk["model"].is_string(),
            "{what}: {chunk}"
        );
    }
}

/// One block after the other, each begun, filled and ended.
fn messages(pieces: &Events, what: &str) {
    let mut kinds = Vec::new();
    let (mut next, mut open) = (0, false);
    for (name, event) in pieces {
        assert_eq!(event["type"], **name, "{what}");
        match name.as_str() {
            "ping" => continue,
            "content_block_start" => {
                assert!(!open && event["index"] == next, "{what}: {event}");
                open = true;
            }
            "content_block_delta" => assert!(open && event["index"] == next, "{what}: {event}"),
            "content_block_stop" => {
                assert!(open && event["index"] == next, "{what}: {event}");
                (next, open) = (next + 1, false);
            }
            _ => {
                assert!(!open, "{what}: {event}");
                kinds.push(name.as_str());
            }
        }
    }
    assert_eq!(
        kinds,
        ["message_start", "message_delta", "message_stop"],
        "{what}"
    );
}

fn native(pieces: &Events, what: &str) {
    let finished =
        |(_, chunk): &(String, Value)| chunk["candidates"][0]["finishReason"].is_string();
    let (last, before) = pieces.split_last().expect("pieces");
    assert!(finished(last) && !before.iter().any(finished), "{what}");
    assert!(last.1["usageMetadata"].is_object(), "{what}");
}

/// Numbered without a gap, and every item that is added is done, in the same place.
fn responses(pieces: &Events, what: &str) {
    let (mut added, mut done) = (Vec::new(), Vec::new());
    for (number, (name, event)) in pieces.iter().enumerate() {
        assert_eq!(event["type"], **name, "{what}");
        assert_eq!(event["sequence_number"], number, "{what}");
        match name.as_str() {
            "response.output_item.added" => added.push(&event["output_index"]),
            "response.output_item.done" => done.push(&event["output_index"]),
            _ => {}
        }
    }
    assert_eq!(added, done, "{what}");
    assert_eq!(
        pieces.first().expect("pieces").0,
        "response.created",
        "{what}"
    );
    let (name, end) = pieces.last().expect("pieces");
    assert_eq!(name, "response.completed", "{what}");
    let output = end["response"]["output"].as_array().expect("output");
    assert_eq!(output.len(), done.len(), "{what}");
}

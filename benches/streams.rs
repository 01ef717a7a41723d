//! Encodes streams in all four formats: in the chat format first, and translated to the others.

use omniglot::model::Format;
use omniglot::translate;
use serde_json::{Value, json};

use crate::response_options::response_options;

/// What the deltas of a stream contain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DeltaKind {
    Text,
    Reasoning,
    Arguments,
}

/// Encodes a stream with `count` deltas, and returns its events.
pub fn encode_stream(format: Format, kind: DeltaKind, count: usize) -> Vec<Vec<u8>> {
    let delta = |number: usize| match kind {
        DeltaKind::Text => json!({"content": " the tide"}),
        DeltaKind::Reasoning => json!({"reasoning_content": " the tide"}),
        DeltaKind::Arguments if number == 0 => json!({"tool_calls": [{"index": 0, "id": "call_1",
            "type": "function", "function": {"name": "send_letter", "arguments": "{\"text\": \""}}]}),
        DeltaKind::Arguments if number == count - 1 => {
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"}"}}]})
        }
        DeltaKind::Arguments => {
            json!({"tool_calls": [{"index": 0, "function": {"arguments": " the tide"}}]})
        }
    };
    let finish = if kind == DeltaKind::Arguments {
        "tool_calls"
    } else {
        "stop"
    };
    let mut chat = String::new();
    let mut event = |delta: &Value, finish: Option<&str>| {
        let chunk = json!({"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk",
            "created": 1_760_000_000, "model": "upstream-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        chat += &format!("data: {chunk}\n\n");
    };
    event(&json!({"role": "assistant", "content": ""}), None);
    for number in 0..count {
        event(&delta(number), None);
    }
    event(&json!({}), Some(finish));
    chat += "data: [DONE]\n\n";
    let bytes = match format {
        Format::Chat => chat.into_bytes(),
        _ => translate::stream(
            Format::Chat,
            format,
            chat.as_bytes(),
            &response_options(true),
        ),
    };
    let text = String::from_utf8(bytes).expect("text");
    text.split_inclusive("\n\n")
        .map(|event| event.as_bytes().to_vec())
        .collect()
}

//! The same streams in all four formats: encoded in one, translated to the others.

use omniglot::model::Format;
use omniglot::translate;
use serde_json::{Value, json};

use crate::response_options::response_options;

/// What the pieces of a stream are pieces of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pieces {
    Text,
    Reasoning,
    Arguments,
}

/// A stream of that many pieces, cut as an upstream sends it: one event at a time.
pub fn stream_in(format: Format, pieces: Pieces, count: usize) -> Vec<Vec<u8>> {
    let delta = |number: usize| match pieces {
        Pieces::Text => json!({"content": " the tide"}),
        Pieces::Reasoning => json!({"reasoning_content": " the tide"}),
        Pieces::Arguments if number == 0 => json!({"tool_calls": [{"index": 0, "id": "call_1",
            "type": "function", "function": {"name": "send_letter", "arguments": "{\"text\": \""}}]}),
        Pieces::Arguments if number == count - 1 => {
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"}"}}]})
        }
        Pieces::Arguments => {
            json!({"tool_calls": [{"index": 0, "function": {"arguments": " the tide"}}]})
        }
    };
    let finish = if pieces == Pieces::Arguments {
        "tool_calls"
    } else {
        "stop"
    };
    let mut wire = String::new();
    let mut event = |delta: &Value, finish: Option<&str>| {
        let chunk = json!({"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk",
            "created": 1_760_000_000, "model": "upstream-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        wire += &format!("data: {chunk}\n\n");
    };
    event(&json!({"role": "assistant", "content": ""}), None);
    for number in 0..count {
        event(&delta(number), None);
    }
    event(&json!({}), Some(finish));
    wire += "data: [DONE]\n\n";
    let bytes = match format {
        Format::Chat => wire.into_bytes(),
        _ => translate::stream(
            Format::Chat,
            format,
            wire.as_bytes(),
            &response_options(true),
        ),
    };
    let text = String::from_utf8(bytes).expect("text");
    text.split_inclusive("\n\n")
        .map(|event| event.as_bytes().to_vec())
        .collect()
}

//! Encodes whole responses in all four formats: in the chat format first, and translated to the others.

use omniglot::model::{Format, Losses};
use omniglot::translate;
use serde_json::{Value, json};

use crate::response_options::response_options;

/// Encodes a response with reasoning, some paragraphs, two tool calls and usage.
pub fn realistic_response(format: Format) -> Vec<u8> {
    let paragraph =
        "The atlas is nearly all maps, with short texts beside them.\n\nIt stands on shelf 12, \
        next to \"A History of Dikes\", and nobody has reserved it yet.\n"
            .repeat(8);
    let call = |id: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": "reserve_book", "arguments": arguments.to_string()}});
    encode_response(
        format,
        &json!({
            "content": paragraph,
            "reasoning_content": "She likes maps. The atlas has maps. ".repeat(10),
            "tool_calls": [
                call("call_1", json!({"title": "Atlas of Tides", "depth": {"pages": 12, "notes": true}})),
                call("call_2", json!({"title": "Tide Tables", "languages": ["en", "de"], "limit": 2})),
            ],
        }),
        "tool_calls",
    )
}

/// Encodes a response of one sentence.
pub fn small_response(format: Format) -> Vec<u8> {
    encode_response(
        format,
        &json!({"content": "The capital of France is Paris."}),
        "stop",
    )
}

/// Encodes the message of a chat completion as a response of another format.
fn encode_response(format: Format, message: &Value, finish_reason: &str) -> Vec<u8> {
    let mut message = message.clone();
    message["role"] = json!("assistant");
    let body = json!({
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "upstream-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 812, "completion_tokens": 210, "total_tokens": 1022,
            "prompt_tokens_details": {"cached_tokens": 512}},
    });
    let body = body.to_string().into_bytes();
    if format == Format::Chat {
        return body;
    }
    translate::response(
        Format::Chat,
        format,
        &body,
        &response_options(false),
        &mut Losses::default(),
    )
    .expect("every format has these fields")
}

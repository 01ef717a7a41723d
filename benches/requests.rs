//! Encodes typical requests in all four formats.

use omniglot::model::Format;
use serde_json::{Value, json};

use crate::documents::encode_request;
use crate::settings::MODEL;

/// Encodes a request with several turns, tool calls and their results, five tools, and a schema for the response.
pub fn realistic_request(format: Format) -> Vec<u8> {
    let call = |id: &str, name: &str, arguments: Value| {
        json!({"role": "assistant", "content": "Let me look that up first.", "tool_calls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}]})
    };
    let result =
        |id: &str, content: &str| json!({"role": "tool", "tool_call_id": id, "content": content});
    let system =
        "You are the assistant of a small library. Answer in plain sentences, name the shelf \
        when you know it, and say so when you do not.\nNever lend out a book that is reserved.\n"
            .repeat(8);
    encode_request(
        format,
        &json!({
            "model": MODEL,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": "Do you have anything on the tides of the North Sea?"},
                call("call_1", "search_books", json!({"query": "tides North Sea", "limit": 5, "languages": ["en", "de"]})),
                result("call_1", "[{\"title\":\"Atlas of Tides\",\"shelf\":12},{\"title\":\"A History of Dikes\",\"shelf\":12}]"),
                {"role": "assistant", "content": "Two books, both on shelf 12: an atlas and a history of dikes."},
                {"role": "user", "content": [
                    {"type": "text", "text": "Which of them would you give to a reader of fourteen who likes maps more than dates, and why?"},
                    {"type": "text", "text": "Here is her list so far:\n\n1. \"Maps of the World\"\n2. \"The Sea Around Us\"\n3. \"Tide Tables 2025\"\n"}]},
                call("call_2", "read_review", json!({"title": "Atlas of Tides", "depth": {"pages": 12, "notes": true}})),
                result("call_2", &"Clear maps, short texts, and a long chapter on storm floods. ".repeat(12)),
                {"role": "assistant", "content": "The atlas: it is nearly all maps."},
                {"role": "user", "content": "Then reserve it for her, please."},
            ],
            "tools": tools(),
            "temperature": 0.7,
            "max_tokens": 2048,
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": {
                "type": "object",
                "properties": {
                    "answer": {"type": "string", "description": "What the reader is told"},
                    "shelf": {"type": ["integer", "null"]},
                    "books": {"type": "array", "items": {"$ref": "#/$defs/book"}},
                },
                "required": ["answer", "shelf", "books"],
                "additionalProperties": false,
                "$defs": {"book": {
                    "type": "object",
                    "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
                    "required": ["title", "year"],
                    "additionalProperties": false,
                }},
            }}},
        }),
    )
}

fn tools() -> Value {
    let names = [
        "search_books",
        "read_review",
        "reserve_book",
        "list_shelf",
        "send_letter",
    ];
    let tool = |name: &str| {
        json!({"type": "function", "function": {
            "name": name,
            "description": format!("{name}: what it does, when to use it, and what it gives back, in a few words."),
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to look for, in the reader's own words"},
                    "title": {"type": "string", "description": "The exact title of a book"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                    "languages": {"type": "array", "items": {"type": "string", "enum": ["en", "de", "fr", "nl"]}},
                    "depth": {
                        "type": "object",
                        "properties": {"pages": {"type": "integer"}, "notes": {"type": "boolean"}},
                        "required": ["pages"],
                    },
                },
                "required": ["query"],
            },
        }})
    };
    names.into_iter().map(tool).collect()
}

/// Encodes a request with one short question.
pub fn small_request(format: Format) -> Vec<u8> {
    let turn = json!({"role": "user", "content": "What is the capital of France?"});
    encode_request(
        format,
        &json!({"model": MODEL, "messages": [turn], "max_tokens": 100}),
    )
}

/// Encodes a request with an image of `size` bytes of base64.
pub fn image_request(format: Format, size: usize) -> Vec<u8> {
    let url = format!(
        "data:image/png;base64,{}",
        "iVBORw0KGgo+/AAA".repeat(size / 16)
    );
    let turn = json!({"role": "user", "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": url}}]});
    encode_request(
        format,
        &json!({"model": MODEL, "messages": [turn], "max_tokens": 100}),
    )
}

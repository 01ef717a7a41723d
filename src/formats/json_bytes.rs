//! Encodes JSON into buffers of the right size.

use serde::Serialize;

use crate::json::write_json;

/// Encodes a body of about `size` bytes; the buffer has some room for escapes on top of it.
pub(in crate::formats) fn to_json_bytes(body: &impl Serialize, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + size / 16 + 512);
    write_json(body, &mut bytes).expect("our own structs with string keys always serialise");
    bytes
}

/// Encodes a JSON string.
pub fn to_json_string(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).expect("a string is always valid JSON")
}

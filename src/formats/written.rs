//! Bodies that are written into memory of the right size, so that what is large is copied once.

use serde::Serialize;

use crate::json::write_json;

/// `size` is about what the body will need; escapes come on top of it.
pub(in crate::formats) fn written(body: &impl Serialize, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + size / 16 + 512);
    write_json(body, &mut bytes).expect("our own structs with string keys always serialise");
    bytes
}

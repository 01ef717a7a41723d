//! Bytes that should be JSON, read into what borrows from them.

use serde::Deserialize;

pub fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    match str::from_utf8(bytes) {
        // Found out once, and not for every string in it.
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    }
}

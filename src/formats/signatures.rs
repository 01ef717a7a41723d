//! Removes the signatures of other upstreams from a body that passes through.

use crate::json::{Edit, RawJson, decode_json};
use crate::model::{Signature, Text};

/// Returns the edit that removes the elements with foreign signatures from an array. `None`: there
/// are none, or it is no array.
pub(in crate::formats) fn remove_elements<'a>(
    array: RawJson<'a>,
    body: &[u8],
    is_foreign: impl Fn(&'a str) -> bool,
    mut removed: impl FnMut(u32),
) -> Option<Edit> {
    let elements: Vec<RawJson<'_>> = decode_json(array.get()).ok()?;
    let mut kept = Vec::with_capacity(elements.len());
    for (number, element) in (0..).zip(&elements) {
        match Signature::may_be_in(element.get().as_bytes()) && is_foreign(element.get()) {
            true => removed(number),
            false => kept.push(element.get()),
        }
    }
    (kept.len() < elements.len()).then(|| Edit {
        range: array.range_in(body),
        with: format!("[{}]", kept.join(",")).into_bytes(),
    })
}

/// Tells whether a field holds a signature that the gateway wrapped.
pub(in crate::formats) fn is_wrapped_signature(field: Option<&Text<'_>>) -> bool {
    field.is_some_and(|text| Signature::unwrap_text(text).is_some())
}

//! What other upstreams have sealed, taken out of a body that goes to one of its own format.

use crate::json::{Edit, RawJson, decode_json};
use crate::model::{Signature, Text};

/// An array without the elements that are sealed; `None`: it has none of these, or is no array.
pub(in crate::formats) fn remove_elements<'a>(
    array: RawJson<'a>,
    body: &[u8],
    is_sealed: impl Fn(&'a str) -> bool,
    mut gone: impl FnMut(u32),
) -> Option<Edit> {
    let elements: Vec<RawJson<'_>> = decode_json(array.get()).ok()?;
    let mut kept = Vec::with_capacity(elements.len());
    for (number, element) in (0..).zip(&elements) {
        match Signature::may_be_in(element.get().as_bytes()) && is_sealed(element.get()) {
            true => gone(number),
            false => kept.push(element.get()),
        }
    }
    (kept.len() < elements.len()).then(|| Edit {
        range: array.range_in(body),
        with: format!("[{}]", kept.join(",")).into_bytes(),
    })
}

pub(in crate::formats) fn is_wrapped_signature(field: Option<&Text<'_>>) -> bool {
    field.is_some_and(|text| Signature::unwrap_text(text).is_some())
}

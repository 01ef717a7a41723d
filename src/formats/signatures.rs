//! Removes the signatures of other upstreams from a body that passes through.

use std::borrow::Cow;

use crate::json::{Edit, RawJson, decode_json};
use crate::model::{Signature, Text};

/// What becomes of an element of an array.
pub(in crate::formats) enum Stripped {
    Unchanged,
    Removed,
    Replaced(String),
}

/// Returns the edit that removes the elements with foreign signatures from an array. `None`: there
/// are none, or it is no array.
pub(in crate::formats) fn remove_elements<'a>(
    array: RawJson<'a>,
    body: &[u8],
    is_foreign: impl Fn(&'a str) -> bool,
    removed: impl FnMut(u32),
) -> Option<Edit> {
    let strip = |element| match is_foreign(element) {
        true => Stripped::Removed,
        false => Stripped::Unchanged,
    };
    strip_elements(array, body, strip, removed)
}

/// Returns the edit that strips the foreign signatures from the elements of an array. `None`: there
/// are none, or it is no array.
pub(in crate::formats) fn strip_elements<'a>(
    array: RawJson<'a>,
    body: &[u8],
    strip: impl Fn(&'a str) -> Stripped,
    mut changed: impl FnMut(u32),
) -> Option<Edit> {
    let elements: Vec<RawJson<'_>> = decode_json(array.get()).ok()?;
    let mut kept: Vec<Cow<'_, str>> = Vec::with_capacity(elements.len());
    let mut is_changed = false;
    for (number, element) in (0..).zip(&elements) {
        let stripped = match Signature::may_be_in(element.get().as_bytes()) {
            true => strip(element.get()),
            false => Stripped::Unchanged,
        };
        match stripped {
            Stripped::Unchanged => {
                kept.push(element.get().into());
                continue;
            }
            Stripped::Removed => {}
            Stripped::Replaced(element) => kept.push(element.into()),
        }
        is_changed = true;
        changed(number);
    }
    is_changed.then(|| Edit {
        range: array.range_in(body),
        with: format!("[{}]", kept.join(",")).into_bytes(),
    })
}

/// Tells whether a field holds a signature that the gateway wrapped.
pub(in crate::formats) fn is_wrapped_signature(field: Option<&Text<'_>>) -> bool {
    field.is_some_and(|text| Signature::unwrap_text(text).is_some())
}

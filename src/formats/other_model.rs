//! Finds a field of a request that names a model beside the one that the request is for.

use crate::json::{FieldMatch, KnownFields, find_field};

/// Returns the path of the first such field. `turns`: the field of the conversation, where an upstream looks for no
/// model. `also`: fields of the body itself that stand for a model.
pub(super) fn find_other_model(
    body: &[u8],
    known: &KnownFields,
    turns: Option<&str>,
    also: &[&str],
) -> Option<String> {
    let text = str::from_utf8(body).unwrap_or_default();
    find_field(text, &|key, is_top| match key {
        "model" if is_top => FieldMatch::Skip,
        key if is_top && Some(key) == turns => FieldMatch::Skip,
        key if is_top && also.contains(&key) => FieldMatch::Found,
        key if known.is_opaque(key) => FieldMatch::Skip,
        key if names_model(key) => FieldMatch::Found,
        _ => FieldMatch::Enter,
    })
}

/// Tells whether a field may name a model: vendors have `models`, `model_name`, `context_window_fallbacks` and more.
pub(super) fn names_model(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let is_switch = key == "allow_fallbacks" || key == "disable_fallbacks";
    key.contains("model") || (key.contains("fallback") && !is_switch)
}
